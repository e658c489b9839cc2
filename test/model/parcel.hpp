// parcel: a value that writes a plain variable in its constructors and destructor, and reads the
// variable when it is moved or used. Two such accesses that nothing orders race. When the last
// parcel is destroyed the variable is 0.
#pragma once

#include <utility>

#include "model/model.hpp"

namespace model {

class parcel {
public:
    explicit parcel(var<int>& at) : at_(&at) { at_->write(7); }
    parcel(parcel&& other) noexcept : at_(std::exchange(other.at_, nullptr)) {
        if (at_ != nullptr) look();
    }
    parcel& operator=(parcel&&) = delete;
    ~parcel() {
        if (at_ != nullptr) at_->write(0);
    }
    void look() const { require(at_->read() == 7, "the value is there"); }

private:
    var<int>* at_;
};

// After all threads.
inline void expect_freed(const var<int>& content) {
    require(content.read() == 0, "the value goes with the last reference");
}

}  // namespace model
