#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace muster {

/// Cores taken for pinned threads, so that no two threads share a core by accident. Other claims leave these
/// cores out, in this process and, if the lock file can be shared, in other processes of this machine. The
/// claims of a process end with it. Move-only.
class CoreClaim {
 public:
  CoreClaim() = default;
  /// Takes the first `count` of `cores` that no other claim holds; takes none if there are fewer.
  /// Thread-safe.
  CoreClaim(std::span<const int> cores, std::size_t count);
  /// Takes those of `cores` that no other claim holds. Thread-safe.
  static CoreClaim ofFree(std::span<const int> cores);
  /// Gives the cores back.
  ~CoreClaim();
  CoreClaim(CoreClaim&& other) noexcept;
  CoreClaim& operator=(CoreClaim&& other) noexcept;

  const std::vector<int>& cores() const { return cores_; }

 private:
  /// Takes the first free ones of `cores`, at most `most`.
  static CoreClaim upTo(std::size_t most, std::span<const int> cores);

  std::vector<int> cores_;
};

}  // namespace muster
