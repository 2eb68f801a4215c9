#pragma once

namespace muster::test {

/// Makes calls of the C library fail on purpose, with a shared library that intercepts them. A program linked
/// with this library uses this object; a program started with it in LD_PRELOAD reads MUSTER_FAILING_CALLS:
/// "<name>,<nth>,<error>,<times>,<under>".
///
/// Names: open, read (also pread), write (also pwrite and writev), ftruncate, fsync, close, rename, mkdir,
/// opendir, flock, fchmod, unlink, fstat, thread (pthread_create), affinity (sched_setaffinity). An error of
/// 0 makes read and write short: half of the bytes, at least one. Files outside of `under` do not count, nor
/// do standard input, output and error.
struct FailingCall {
  const char* name;
  long nth = 0;    ///< counted from 0
  int error = 0;   ///< errno
  long times = 1;  ///< number of failures in a row; below 0: all from there on
  const char* under = "/";
};

}  // namespace muster::test

extern "C" {
/// Sets the failing call from now on and restarts counting; nullptr: no failure. Any thread may make calls
/// meanwhile.
void musterFailCalls(const muster::test::FailingCall* call);
/// Number of failed calls since then.
long musterFailedCalls();
}

namespace muster::test {

/// Makes the call fail during its lifetime.
class FailingCalls {
 public:
  explicit FailingCalls(const FailingCall& call) { musterFailCalls(&call); }
  ~FailingCalls() { musterFailCalls(nullptr); }
  FailingCalls(const FailingCalls&) = delete;
  FailingCalls& operator=(const FailingCalls&) = delete;

  long count() const { return musterFailedCalls(); }
};

}  // namespace muster::test
