#pragma once

#include <cstdint>
#include <string>
#include <vector>

// Summarises what a GPU spends its time on, from traced activities.

namespace muster::bench {

/// One GPU activity: a kernel, a copy, or a memset.
struct Activity {
  std::string name;
  std::uint64_t begin = 0, end = 0;  // nanoseconds
  std::uint32_t launch = 0;          // id of the launching call, shared by all of a graph
};

struct TraceSummary {
  struct Row {
    std::string name;
    std::int64_t count = 0;
    double seconds = 0;
  };
  double span = 0;             // seconds from the first beginning to the last end
  double busy = 0;             // in which at least one activity was under way
  double withinLaunches = 0;   // idle time between two activities of the same launch
  double betweenLaunches = 0;  // idle time between activities of different launches
  std::int64_t merges = 0;     // of replicas; consecutive merge kernels count as one
  double beforeMerges = 0;     // idle time before a merge began
  double afterMerges = 0;      // idle time after a merge ended
  std::vector<Row> rows;       // by name, sorted by decreasing seconds
};

/// @param activities  in any order.
TraceSummary summarise(std::vector<Activity> activities);

/// A text and a table, per step.
/// @param secondsAStep  measured without tracing, which costs time.
std::string describe(const TraceSummary& summary, std::int64_t steps, double secondsAStep);

}  // namespace muster::bench
