#pragma once

namespace muster::test {

/// Calls of the C library that fail on purpose, by a shared library that stands before it. A program that is
/// linked with it uses this object; one that is started with it in LD_PRELOAD reads MUSTER_FAILING_CALLS:
/// "<name>,<nth>,<error>,<times>,<under>".
///
/// Names: open, read, write, fsync, close, rename, mkdir, opendir, flock, fchmod, unlink, fstat, thread
/// (pthread_create), affinity (sched_setaffinity). An error of 0 makes read and write short: half of the
/// bytes, at least one. Files outside of `under` do not count, nor do standard input, output and error.
struct FailingCall {
  const char* name;
  long nth = 0;    ///< counted from 0
  int error = 0;   ///< errno
  long times = 1;  ///< that many in a row; below 0: from there on, always
  const char* under = "/";
};

}  // namespace muster::test

extern "C" {
/// From here on; nullptr: none fails. Any thread may call them meanwhile. Counts anew.
void musterFailCalls(const muster::test::FailingCall* call);
/// How many have failed since.
long musterFailedCalls();
}

namespace muster::test {

/// While it lives, the call fails.
class FailingCalls {
 public:
  explicit FailingCalls(const FailingCall& call) { musterFailCalls(&call); }
  ~FailingCalls() { musterFailCalls(nullptr); }
  FailingCalls(const FailingCalls&) = delete;
  FailingCalls& operator=(const FailingCalls&) = delete;

  long count() const { return musterFailedCalls(); }
};

}  // namespace muster::test
