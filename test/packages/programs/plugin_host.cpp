// A program that knows nothing of weft and opens a plugin: plugin_host <shared object>.

#include <dlfcn.h>

#include <cstdio>

int main(int argc, char** argv) {
    void* const plugin = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
    void* const answers = plugin != nullptr ? dlsym(plugin, "plugin_answers") : nullptr;
    if (answers == nullptr) {
        std::fprintf(stderr, "plugin_host: %s\n", argc == 2 ? dlerror() : "usage: <shared object>");
        return 2;
    }
    return reinterpret_cast<int (*)()>(answers)();
}
