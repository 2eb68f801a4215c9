#pragma once

#include <mutex>

// Clang's -Wthread-safety (preset clang) checks that members are used with the mutex held that guards them.
// Other compilers see nothing of these words.
#if defined(__clang__)
#define MUSTER_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define MUSTER_THREAD_SAFETY(attribute)
#endif
/// Behind a member: it is read and written with this mutex held.
#define MUSTER_GUARDED_BY(mutex) MUSTER_THREAD_SAFETY(guarded_by(mutex))
/// Behind a function: it is called with this mutex held.
#define MUSTER_REQUIRES(mutex) MUSTER_THREAD_SAFETY(requires_capability(mutex))

namespace muster {

/// A std::mutex that Clang's analysis knows. Only a Lock locks it.
class MUSTER_THREAD_SAFETY(capability("mutex")) Mutex {
 private:
  friend class Lock;
  std::mutex mutex_;
};

/// Holds a Mutex while it lives, but between `unlock` and `lock`.
class MUSTER_THREAD_SAFETY(scoped_lockable) Lock {
 public:
  explicit Lock(Mutex& mutex) MUSTER_THREAD_SAFETY(acquire_capability(mutex)) : lock_(mutex.mutex_) {}
  ~Lock() MUSTER_THREAD_SAFETY(release_capability()) {}
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void lock() MUSTER_THREAD_SAFETY(acquire_capability()) { lock_.lock(); }
  void unlock() MUSTER_THREAD_SAFETY(release_capability()) { lock_.unlock(); }
  /// For std::condition_variable, in a loop: the analysis does not look into a predicate.
  std::unique_lock<std::mutex>& native() { return lock_; }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace muster
