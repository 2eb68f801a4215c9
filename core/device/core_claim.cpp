#include "muster/core/device/core_claim.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "muster/core/base/mutex.h"

namespace muster {
namespace {

/// All processes lock the same file: byte n for core n. Nothing is written to it.
constexpr const char* kLockFile = "/tmp/muster-cores.lock";

/// @return -1 if the file cannot be opened: then claims of other processes are ignored.
int openLockFile() {
  constexpr int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
  // Other users lock the file, too, so a file made here gets these permissions whatever the umask.
  const int made = ::open(kLockFile, flags | O_CREAT | O_EXCL, 0666);
  if (made >= 0) ::fchmod(made, 0666);
  return made >= 0 ? made : ::open(kLockFile, flags);
}

/// The claims of this process.
class Claims {
 public:
  bool take(int core) MUSTER_REQUIRES(mutex) {
    if (cores_.contains(core)) return false;
    if (!lock(core, F_WRLCK)) return false;
    try {
      cores_.insert(core);
    } catch (...) {
      lock(core, F_UNLCK);
      throw;
    }
    return true;
  }
  void giveBack(int core) noexcept MUSTER_REQUIRES(mutex) {
    cores_.erase(core);
    lock(core, F_UNLCK);
  }

  Mutex mutex;

 private:
  /// @return false if another process holds the core.
  bool lock(int core, short type) noexcept {
    struct flock range {};
    range.l_type = type;
    range.l_whence = SEEK_SET;
    range.l_start = core;
    range.l_len = 1;
    return file_ < 0 || ::fcntl(file_, F_SETLK, &range) == 0 || (errno != EACCES && errno != EAGAIN);
  }

  std::set<int> cores_ MUSTER_GUARDED_BY(mutex);
  const int file_ = openLockFile();  // never closed: closing it would end the process's locks
};

Claims& claims() {
  static Claims instance;
  return instance;
}

}  // namespace

CoreClaim CoreClaim::upTo(std::size_t most, std::span<const int> cores) {
  CoreClaim taken;
  if (most == 0) return taken;
  taken.cores_.reserve(most);
  const Lock lock(claims().mutex);
  for (const int core : cores)
    if (taken.cores_.size() < most && claims().take(core)) taken.cores_.push_back(core);
  return taken;
}

CoreClaim::CoreClaim(std::span<const int> cores, std::size_t count) {
  CoreClaim taken = upTo(count, cores);  // its destructor gives the cores back if there are too few
  if (taken.cores_.size() == count) cores_ = std::exchange(taken.cores_, {});
}

CoreClaim CoreClaim::ofFree(std::span<const int> cores) {
  return upTo(cores.size(), cores);
}

CoreClaim::~CoreClaim() {
  if (cores_.empty()) return;
  const Lock lock(claims().mutex);
  for (const int core : cores_) claims().giveBack(core);
}

CoreClaim::CoreClaim(CoreClaim&& other) noexcept : cores_(std::exchange(other.cores_, {})) {}

CoreClaim& CoreClaim::operator=(CoreClaim&& other) noexcept {
  std::swap(cores_, other.cores_);
  return *this;
}

}  // namespace muster
