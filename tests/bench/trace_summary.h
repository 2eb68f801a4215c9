#pragma once

#include <cstdint>
#include <string>
#include <vector>

// Where the time of a GPU goes, from what it was seen to do.

namespace muster::bench {

/// Something that a GPU does by itself: a kernel, a copy, zeros written.
struct Activity {
  std::string name;
  std::uint64_t begin = 0, end = 0;  // nanoseconds
  std::uint32_t launch = 0;          // of the call that began it; those of one graph's launch share it
};

struct TraceSummary {
  struct Row {
    std::string name;
    std::int64_t count = 0;
    double seconds = 0;
  };
  double span = 0;             // seconds from the first beginning to the last end
  double busy = 0;             // in which at least one activity was under way
  double withinLaunches = 0;   // nothing was, between two of the same launch
  double betweenLaunches = 0;  // nor was it between two of different ones
  std::int64_t merges = 0;     // of replicas: kernels of merges one after the other count as one
  double beforeMerges = 0;     // nothing was, and then a merge began
  double afterMerges = 0;      // nothing was since a merge had ended
  std::vector<Row> rows;       // by name, that of the most seconds first
};

/// @param activities  in any order.
TraceSummary summarise(std::vector<Activity> activities);

/// In words and a table, all of it a step.
/// @param secondsAStep  measured without tracing, which costs time.
std::string describe(const TraceSummary& summary, std::int64_t steps, double secondsAStep);

}  // namespace muster::bench
