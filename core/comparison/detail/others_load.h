#pragma once

namespace muster::detail {

/// Measures, from its creation on, how many cores other programs keep busy, by /proc/stat.
class OthersLoad {
 public:
  static constexpr double kShortest = 0.5;  ///< seconds; of a shorter time little is known
  OthersLoad();
  /// On average so far; 0 if the system does not say, or has not counted for long enough.
  double cores() const;
  /// The cores that others kept busy, at most `available`, since all programs together used `all` seconds of
  /// cores and this one `own` within `elapsed`; 0 for less than kShortest: the system counts in steps of
  /// 10 ms for each core.
  static double coresOf(double all, double own, double elapsed, long available);
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
