// tls_rest: what a TLS stream has to send while its socket has no room.
//
// Design: appending costs what is appended. The rest is bytes, as they are sent; or, while the
// kernel makes the records (tls_kernel.hpp), pieces of their contents, each after its type. A piece
// that is sent in part stays a piece: its head moves along.
//
//      begin_                             end_          sent: 3 bytes       begin_
//      | type, 5 | h e l l o | type, 2 | c n |                ---> . . . . . | type, 2 | l o | ...
//
// Model: none, it is not shared.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace weft::detail {

class tls_rest {
public:
    bool empty() const noexcept { return begin_ == end_; }
    std::byte* data() const noexcept { return bytes_.get() + begin_; }
    std::size_t size() const noexcept { return end_ - begin_; }

    // False: no memory.
    bool append(const std::byte* from, std::size_t count) noexcept {
        if (capacity_ - end_ < count && !make_room(count)) return false;
        std::copy_n(from, count, bytes_.get() + end_);
        end_ += count;
        return true;
    }
    void drop(std::size_t count) noexcept {
        begin_ += count;
        if (empty()) *this = {};
    }

    struct piece {
        std::uint32_t bytes;
        unsigned char type;
    };
    // Appends a piece. False: no memory, and nothing of it is appended.
    bool append(unsigned char type, const std::byte* from, std::size_t count) noexcept {
        const piece head = {static_cast<std::uint32_t>(count), type};
        if (capacity_ - end_ < sizeof head + count && !make_room(sizeof head + count)) return false;
        return append(reinterpret_cast<const std::byte*>(&head), sizeof head) &&
               append(from, count);
    }
    piece first() const noexcept {
        piece head;
        std::memcpy(&head, data(), sizeof head);
        return head;
    }
    std::byte* first_contents() const noexcept { return data() + sizeof(piece); }
    // Drops this many bytes of the first piece's contents, at least one.
    void drop_of_first(std::size_t count) noexcept {
        piece head = first();
        head.bytes -= static_cast<std::uint32_t>(count);
        if (head.bytes == 0)
            count += sizeof head;
        else
            std::memcpy(data() + count, &head, sizeof head);
        drop(count);
    }

private:
    // Makes room at the end: what is copied is paid for by as much that was dropped, or by half as
    // much that is appended.
    bool make_room(std::size_t count) noexcept {
        const std::size_t all = size() + count;
        if (all > capacity_ || begin_ < size()) {
            const std::size_t larger = all + size() / 2;
            std::unique_ptr<std::byte[]> grown(new (std::nothrow) std::byte[larger]);
            if (!grown) return false;
            std::copy_n(data(), size(), grown.get());
            bytes_ = std::move(grown);
            capacity_ = larger;
        } else {
            std::copy_n(data(), size(), bytes_.get());
        }
        end_ = size();
        begin_ = 0;
        return true;
    }

    std::unique_ptr<std::byte[]> bytes_;
    std::size_t capacity_ = 0;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

}  // namespace weft::detail
