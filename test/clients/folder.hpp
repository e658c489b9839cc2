// folder: a new directory for temporary files, which the destructor removes with everything in it.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace weft::testing {

class folder {
public:
    explicit folder(const std::string& name) {
        std::string pattern = ::testing::TempDir() + "weft." + name + ".XXXXXX";
        EXPECT_NE(::mkdtemp(pattern.data()), nullptr) << pattern;
        path_ = pattern;
    }
    folder(const folder&) = delete;
    folder& operator=(const folder&) = delete;
    ~folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    const std::filesystem::path& path() const noexcept { return path_; }
    std::string operator/(const std::string& name) const { return path_ / name; }

    void write(const std::string& name, const std::string& content) const {
        std::filesystem::create_directories((path_ / name).parent_path());
        std::ofstream(path_ / name, std::ios::binary) << content;
    }
    // `text`, with each name replaced by its value, as in "port @port@".
    using names = std::vector<std::pair<std::string, std::string>>;
    void write(const std::string& name, std::string text, const names& meant) const {
        for (const auto& [from, to] : meant)
            for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
                text.replace(at, from.size(), to);
        write(name, text);
    }
    std::string read(const std::string& name) const {
        std::ifstream in(path_ / name, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }

private:
    std::filesystem::path path_;
};

}  // namespace weft::testing
