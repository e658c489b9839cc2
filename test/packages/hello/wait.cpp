// wait: a thread waits for an operation.

#include <chrono>

#include "weft/wait/await.hpp"
#include "weft/wait/sleep.hpp"

int main() { weft::sync_wait(weft::sleep_for(std::chrono::milliseconds(1))); }
