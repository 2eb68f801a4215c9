#pragma once

#include <unistd.h>

#include <memory>
#include <string_view>

#include "muster/core/base/error.h"

namespace muster {

/// The process that created an object with threads. A child of fork() has a copy of the object's memory, but
/// none of its threads.
class OwnerProcess {
 public:
  bool isThisOne() const { return process_ == ::getpid(); }

 private:
  const pid_t process_ = ::getpid();
};

/// Returns the implementation of a public object with threads, for a call.
/// @param impl  has an OwnerProcess `owner`; null in an object that was moved from.
/// @param what  begins the error, as in "fit".
/// @throws InvalidArgument if the object was moved from, or belongs to the parent of this process.
template <typename Impl>
Impl& usable(const std::unique_ptr<Impl>& impl, std::string_view what) {
  require(impl != nullptr, "{}: this object was moved from; use the one that it was moved to", what);
  require(
      impl->owner.isThisOne(),
      "{}: this process is a child of the one that made the object, and has none of its threads; call exec "
      "after fork, or make the object in the child",
      what);
  return *impl;
}

/// In a child process: never destroys the object, since that would wait for threads of the parent.
template <typename Impl>
void abandonInChild(std::unique_ptr<Impl>& impl) noexcept {
  if (impl && !impl->owner.isThisOne()) static_cast<void>(impl.release());
}

}  // namespace muster
