// Intercepts functions of the C library: calls the real ones, or fails.
#include "tests/faults/failing_calls.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>

#include "tests/support/standard.h"

namespace {

struct Armed {
  char name[16] = "";
  char under[PATH_MAX] = "/";
  int error = 0;
};

Armed armed;  // written while `active` is false
std::atomic<bool> active{false};
std::atomic<long> before{0}, left{0};  // calls before the first failure, and number of failures
std::atomic<long> failed{0};
std::atomic<long> clockCalls{0};
bool clockRunsBack = false;

template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

bool isUnder(const char* path) {
  if (path == nullptr) return true;
  char absolute[PATH_MAX];
  if (path[0] != '/' && ::getcwd(absolute, sizeof absolute) != nullptr) path = absolute;
  return std::strncmp(path, armed.under, std::strlen(armed.under)) == 0;
}

bool isUnder(int descriptor) {
  if (descriptor <= STDERR_FILENO) return false;
  if (std::strcmp(armed.under, "/") == 0) return true;
  char link[64], path[PATH_MAX];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = ::readlink(link, path, sizeof path - 1);
  if (length < 0 || path[0] != '/') return false;  // a pipe or the like
  path[length] = '\0';
  return isUnder(path);
}

/// Whether this call is to fail; then errno is set.
template <typename Where>
bool fails(const char* name, Where where) {
  if (!active || std::strcmp(name, armed.name) != 0) return false;
  const int saved = errno;
  const bool counts = isUnder(where);
  errno = saved;
  if (!counts || before-- > 0) return false;
  before = 0;
  if (left == 0) return false;
  if (left > 0) --left;
  ++failed;
  errno = armed.error;
  return true;
}

const char* const kNoPath = nullptr;

struct FromEnvironment {
  FromEnvironment() {
    clockRunsBack = std::getenv("MUSTER_CLOCK_RUNS_BACK") != nullptr;
    const char* const text = std::getenv("MUSTER_FAILING_CALLS");
    if (text == nullptr) return;
    static char name[16], under[PATH_MAX] = "/";
    muster::test::FailingCall call{name};
    if (std::sscanf(text, "%15[^,],%ld,%d,%ld,%4000s", name, &call.nth, &call.error, &call.times, under) < 4)
      std::abort();
    call.under = under;
    musterFailCalls(&call);
  }
} const fromEnvironment;

}  // namespace

extern "C" {

void musterFailCalls(const muster::test::FailingCall* call) {
  active = false;
  failed = 0;
  if (call == nullptr) return;
  std::snprintf(armed.name, sizeof armed.name, "%s", call->name);
  std::snprintf(armed.under, sizeof armed.under, "%s", call->under);
  armed.error = call->error;
  before = call->nth;
  left = call->times;
  active = true;
}

long musterFailedCalls() {
  return failed;
}

#define MUSTER_OPEN(function)                                                            \
  int function(const char* path, int flags, ...) {                                       \
    static const auto call = real<int (*)(const char*, int, ...)>(#function);            \
    va_list more;                                                                        \
    va_start(more, flags);                                                               \
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0; \
    va_end(more);                                                                        \
    return fails("open", path) ? -1 : call(path, flags, mode);                           \
  }
MUSTER_OPEN(open)
MUSTER_OPEN(open64)

/// Defines a function of the C library that returns `failure` if a call of this name, which counts by
/// `where`, is to fail.
#define MUSTER_CALL(type, function, parameters, arguments, name, where, failure) \
  type function parameters {                                                     \
    static const auto call = real<type(*) parameters>(#function);                \
    return fails(name, where) ? failure : call arguments;                        \
  }
MUSTER_CALL(FILE*, fopen, (const char* path, const char* mode), (path, mode), "open", path, nullptr)
MUSTER_CALL(FILE*, fopen64, (const char* path, const char* mode), (path, mode), "open", path, nullptr)
MUSTER_CALL(int, ftruncate, (int file, off_t size) noexcept, (file, size), "ftruncate", file, -1)
MUSTER_CALL(int, ftruncate64, (int file, off_t size) noexcept, (file, size), "ftruncate", file, -1)
MUSTER_CALL(int, fsync, (int file), (file), "fsync", file, -1)
MUSTER_CALL(int, rename, (const char* from, const char* to), (from, to), "rename", from, -1)
MUSTER_CALL(int, unlink, (const char* path), (path), "unlink", path, -1)
MUSTER_CALL(int, mkdir, (const char* path, mode_t mode), (path, mode), "mkdir", path, -1)
MUSTER_CALL(DIR*, opendir, (const char* path), (path), "opendir", path, nullptr)
MUSTER_CALL(int, flock, (int file, int operation), (file, operation), "flock", file, -1)
MUSTER_CALL(int, fchmod, (int file, mode_t mode), (file, mode), "fchmod", file, -1)
MUSTER_CALL(int, fstat, (int file, struct stat* status), (file, status), "fstat", file, -1)
MUSTER_CALL(int, sched_setaffinity, (pid_t thread, size_t size, const cpu_set_t* cores),
            (thread, size, cores), "affinity", kNoPath, -1)

/// As MUSTER_CALL; without an error the call transfers half of the bytes, at least one.
#define MUSTER_TRANSFER(function, parameters, arguments, name)       \
  ssize_t function parameters {                                      \
    static const auto call = real<ssize_t(*) parameters>(#function); \
    if (fails(name, file)) {                                         \
      if (armed.error != 0) return -1;                               \
      size = std::max<size_t>(1, size / 2);                          \
    }                                                                \
    return call arguments;                                           \
  }
MUSTER_TRANSFER(read, (int file, void* bytes, size_t size), (file, bytes, size), "read")
MUSTER_TRANSFER(write, (int file, const void* bytes, size_t size), (file, bytes, size), "write")
MUSTER_TRANSFER(pread, (int file, void* bytes, size_t size, off_t at), (file, bytes, size, at), "read")
MUSTER_TRANSFER(pread64, (int file, void* bytes, size_t size, off_t at), (file, bytes, size, at), "read")
MUSTER_TRANSFER(pwrite, (int file, const void* bytes, size_t size, off_t at), (file, bytes, size, at),
                "write")
MUSTER_TRANSFER(pwrite64, (int file, const void* bytes, size_t size, off_t at), (file, bytes, size, at),
                "write")

/// A short call writes half of the first part that has bytes.
ssize_t writev(int descriptor, const struct iovec* parts, int count) {
  static const auto call = real<ssize_t (*)(int, const struct iovec*, int)>("writev");
  if (!fails("write", descriptor)) return call(descriptor, parts, count);
  if (armed.error != 0) return -1;
  const auto* const end = parts + count;
  const auto* const part = std::find_if(parts, end, [](const iovec& one) { return one.iov_len > 0; });
  if (part == end) return 0;
  const iovec half{part->iov_base, std::max<size_t>(1, part->iov_len / 2)};
  return call(descriptor, &half, 1);
}

/// As on Linux, the descriptor is closed even if the call fails.
int close(int descriptor) {
  static const auto call = real<int (*)(int)>("close");
  if (!fails("close", descriptor)) return call(descriptor);
  const int error = errno;
  call(descriptor);
  errno = error;
  return -1;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                   void* argument) {
  static const auto call =
      real<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  const int saved = errno;
  const bool refused = fails("thread", kNoPath);
  errno = saved;
  return refused ? armed.error : call(thread, attributes, body, argument);
}

/// With MUSTER_CLOCK_RUNS_BACK the time of day is an hour earlier in each call.
int clock_gettime(clockid_t clock, struct timespec* time) {
  static const auto call = real<int (*)(clockid_t, struct timespec*)>("clock_gettime");
  const int result = call(clock, time);
  if (clockRunsBack && clock == CLOCK_REALTIME) time->tv_sec -= 3600 * ++clockCalls;
  return result;
}

}  // extern "C"
