// System calls on pidfds. (glibc 2.36 declares them, but not so that C++ can link them.)
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "world/fd.h"

namespace holdfast::world {

/// Closed on exec. None, with errno set, where there is no such process.
inline Fd open_pidfd(pid_t pid) { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

/// Nothing happens where the process is gone.
inline void signal_pidfd(int pidfd, int number) { ::syscall(SYS_pidfd_send_signal, pidfd, number, nullptr, 0); }

}  // namespace holdfast::world
