// The optional part over OpenSSL: what a client trusts.

#include "weft/io/tls/tls_context.hpp"

int main() { return weft::tls_context::client() ? 0 : 1; }
