// scratch_folder: a directory of its own for a test, which the destructor removes.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace weft::testing {

class scratch_folder {
public:
    scratch_folder() : path_(::testing::TempDir() + "weft_XXXXXX") {
        EXPECT_NE(::mkdtemp(path_.data()), nullptr);
    }
    scratch_folder(const scratch_folder&) = delete;
    ~scratch_folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    // What has this name in it.
    std::string operator/(const std::string& name) const { return path_ + "/" + name; }
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

inline void put_file(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
}

}  // namespace weft::testing
