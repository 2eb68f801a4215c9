#pragma once

namespace muster {

/// While an object lives, Verbs::mean on the same thread may return before the mean is formed. A strategy
/// makes one in `launch` around the mean of a fragment that lands in a later round: over nodes the workers
/// then train while the mean is sent and formed. Use the mean in `land`, not earlier; a failure is thrown at
/// the end of that round. The tensors may change once Verbs::mean has returned.
class MeansInFlight {
 public:
  /// @param later  whether the fragment lands in a later round; if false, the object does nothing.
  explicit MeansInFlight(bool later) : before_(here()) { here() = later; }
  ~MeansInFlight() { here() = before_; }
  MeansInFlight(const MeansInFlight&) = delete;
  MeansInFlight& operator=(const MeansInFlight&) = delete;

  /// Whether an active object lives on this thread.
  static bool may() { return here(); }

 private:
  static bool& here() {
    thread_local bool may = false;
    return may;
  }
  const bool before_;
};

}  // namespace muster
