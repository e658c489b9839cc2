// peer_credentials: the process at the other end of a local connection, as it was when it connected
// or listened (SO_PEERCRED).
//
// Design: the system records the process when the connection is made, so nothing is asked of the
// peer.
//
// Limits: that process may have ended since, and its ID may be another's.
//
//   if (auto peer = s.credentials(); peer && peer->user == ::getuid()) serve(s);
#pragma once

#include <sys/types.h>

#include "weft/base/result.hpp"
#include "weft/io/detail/descriptor.hpp"

namespace weft {

struct peer_credentials {
    ::pid_t process = -1;
    ::uid_t user = static_cast<::uid_t>(-1);
    ::gid_t group = static_cast<::gid_t>(-1);
};

namespace detail {

// Errors are those of getsockopt; errc::closed after a close().
result<peer_credentials> credentials_of(const descriptor_ref& of) noexcept;

}  // namespace detail
}  // namespace weft
