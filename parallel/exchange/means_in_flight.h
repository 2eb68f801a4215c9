#pragma once

namespace muster {

/// While it lives, a Verbs::mean of the same thread may go on after it has returned. A strategy makes one in
/// `launch` around the mean of a fragment that lands in a later round: over nodes the workers then train
/// while it is sent and formed. The mean is to be used in `land` and not before, and what goes wrong is
/// thrown at the end of that round. The tensors may change once Verbs::mean has returned.
class MeansInFlight {
 public:
  /// @param later  whether there is a later round; else it does nothing.
  explicit MeansInFlight(bool later) : before_(here()) { here() = later; }
  ~MeansInFlight() { here() = before_; }
  MeansInFlight(const MeansInFlight&) = delete;
  MeansInFlight& operator=(const MeansInFlight&) = delete;

  /// Whether one lives on this thread.
  static bool may() { return here(); }

 private:
  static bool& here() {
    thread_local bool may = false;
    return may;
  }
  const bool before_;
};

}  // namespace muster
