#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// libfaketime shows the real time to a signal handler that runs while one of its own wait functions
// is under way, so no time-out of Postgres would ever be due. These take their place. They wait for
// spans, to which a shifted clock means nothing.

int epoll_wait(int fd, struct epoll_event *events, int count, int ms) {
  return syscall(SYS_epoll_pwait, fd, events, count, ms, NULL, _NSIG / 8);
}

int epoll_pwait(int fd, struct epoll_event *events, int count, int ms, const sigset_t *mask) {
  return syscall(SYS_epoll_pwait, fd, events, count, ms, mask, _NSIG / 8);
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *span, const sigset_t *mask) {
  // The kernel writes the rest of the time into it.
  struct timespec left = span ? *span : (struct timespec){0, 0};
  return syscall(SYS_ppoll, fds, count, span ? &left : NULL, mask, _NSIG / 8);
}

int poll(struct pollfd *fds, nfds_t count, int ms) {
  struct timespec span = {ms / 1000, ms % 1000 * 1000000L};
  return ppoll(fds, count, ms < 0 ? NULL : &span, NULL);
}

int nanosleep(const struct timespec *span, struct timespec *left) {
  return syscall(SYS_nanosleep, span, left);
}
