#pragma once

namespace muster::detail {

/// Measures, from its creation on, how many cores other programs keep busy, by /proc/stat.
class OthersLoad {
 public:
  OthersLoad();
  /// On average so far; 0 if the system does not say.
  double cores() const;
  /// Whether so many busy cores leave too few for `threads`.
  static bool crowds(double busy, long threads);

 private:
  struct Times {
    double all = 0, own = 0, clock = 0;  // seconds
  };
  static Times now();
  Times begin_;
};

}  // namespace muster::detail
