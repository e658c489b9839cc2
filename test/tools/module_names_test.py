"""tools/module_names.py finds the public names of a small tree, each form of declaration among them, and
compares them with what a module exports."""

import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import module_names  # noqa: E402

NAMES = """#pragma once
#include <vector>
#include "weft/low/detail/inner.hpp"
#include "weft/low/writers.hpp"
#define WEFT_TWICE(x) \\
    void not_declared(x)
namespace weft {

class announced;
class [[nodiscard]] defined final : public detail::base {
    void member();
};
template <class T>
    requires(sizeof(T) >= 2)
struct alignas(64) pinned {};
template <class Signature>
class by_signature;
template <class R, class... Args>
class by_signature<R(Args...)> {};
enum class colour { red };
using alias = std::vector<int>;
using std::size_t;
template <class T>
concept sized = requires(T t) { t.size(); } && true;
inline constexpr int most = 3;
inline constexpr auto cube = [](int n) { return n * n * n; };
extern thread_local std::vector<int> braced{};
[[nodiscard]] std::vector<int> plain(int a = 1, const char* s = "}") noexcept;
template <class F>
    requires requires(F f) { f(); } && (sizeof(F) > 1)
WEFT_ALWAYS_INLINE decltype(auto) called(F&& f, std::vector<int> v = {}) {
    return f();
}
template <class F>
    requires(sizeof(F) <= 1)
auto after_requires(F f) -> decltype(f()) {
    if (true) { return f(); }
}
constexpr bool operator<(alias a, alias b) { return a.size() < b.size(); }
defined operator co_await(alias a);
void defined::member() {}
template <class T>
void pinned<T>::member() {}
static_assert(sizeof(int) == 4);
template class pinned<int>;
namespace inner { void nested(); }
namespace detail { void hidden(); }

}  // namespace weft
namespace weft::detail {
void hidden_too();
}
template <>
struct std::hash<weft::colour> {};
void outside();
"""
EXPECTED = {
    "weft::" + name for name in
    ("defined pinned by_signature colour alias size_t sized most cube braced plain called "
     "after_requires inner::nested of_writers").split()
} | {"weft::operator<", "weft::operator co_await"}

TREE = {
    "CMakeLists.txt": "weft_layer(low)\nweft_layer(high low)\n",
    "weft/weft.hpp": '#pragma once\n#include "weft/low/names.hpp"\n',
    "weft/low/names.hpp": NAMES,
    "weft/low/writers.hpp": "namespace weft {\nvoid of_writers();\n}\n",
    "weft/low/detail/inner.hpp": "namespace weft {\nvoid of_detail();\n}\n",
    "weft/high/unreached.hpp": "namespace weft {\nvoid unreached();\n}\n",
    "packaging/module/weft.cppm": "export module weft;\nexport namespace weft {\n" +
                                  "".join(f"using {name};\n" for name in sorted(EXPECTED)) + "}\n",
}


class ModuleNames(unittest.TestCase):
    def faults_of(self, **module):
        with tempfile.TemporaryDirectory() as folder:
            for path, text in TREE.items():
                if path in module:
                    text = module[path](text)
                (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
                (Path(folder) / path).write_text(text)
            self.names = module_names.public_names(Path(folder))
            return sorted(f"{path}:{line}: {said}" for path, line, said in
                          module_names.faults(Path(folder)))

    def with_module(self, old, new):
        return self.faults_of(**{"packaging/module/weft.cppm": lambda text: text.replace(old, new)})

    def test_each_form_of_a_public_declaration_is_found_and_nothing_else(self):
        self.assertEqual(self.faults_of(), [])
        self.assertEqual(set(self.names["low"]), EXPECTED)
        self.assertEqual(self.names["high"], {})

    def test_a_name_that_is_not_exported_is_a_fault_at_its_declaration(self):
        line = NAMES[:NAMES.index("inline constexpr int most")].count("\n") + 1
        self.assertEqual(self.with_module("using weft::most;\n", ""),
                         [f"weft/low/names.hpp:{line}: packaging/module/weft.cppm does not export "
                          "weft::most; tools/module_names.py --write adds it"])

    def test_an_export_of_no_public_name_and_a_second_export_are_faults(self):
        said = self.with_module("using weft::most;\n", "using weft::most;\nusing weft::detail::hidden;\n"
                                "using weft::most;\n")
        self.assertEqual([line.split(": ", 1)[1] for line in said],
                         ["weft::detail::hidden is in no public header under weft/weft.hpp",
                          "weft::most is exported twice"])


if __name__ == "__main__":
    unittest.main()
