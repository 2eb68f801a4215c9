#include "tests/bench/trace_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace muster::bench {
namespace {

constexpr std::size_t kLongestName = 90, kMostRows = 25;
constexpr double kWorking = 0.85;  // share of the time above which a step is called GPU-bound

std::vector<TraceSummary::Row> rowsOf(const std::vector<Activity>& activities) {
  std::map<std::string, TraceSummary::Row> byName;
  for (const auto& a : activities) {
    auto& row = byName[a.name];
    row.name = a.name;
    ++row.count;
    row.seconds += 1e-9 * static_cast<double>(a.end - a.begin);
  }
  std::vector<TraceSummary::Row> rows;
  for (auto& [name, row] : byName) rows.push_back(std::move(row));
  std::ranges::stable_sort(rows, std::greater(), &TraceSummary::Row::seconds);
  return rows;
}

/// Whether the activity is one of our kernels that merge replicas.
bool isMerge(const Activity& a) {
  for (const char* kernel : {"meanKernel", "meanOfManyKernel", "momentsKernel"})
    if (a.name.find(kernel) != std::string::npos) return true;
  return false;
}

std::string shortened(const std::string& name) {
  return name.size() <= kLongestName ? name : name.substr(0, kLongestName - 3) + "...";
}

double total(const TraceSummary& summary) {
  double seconds = 0;
  for (const auto& row : summary.rows) seconds += row.seconds;
  return seconds;
}

std::string whatBounds(const TraceSummary& summary, double share) {
  if (share < kWorking)
    return summary.betweenLaunches > summary.withinLaunches
               ? "the time between launches: the host has not enqueued the next step in time, or it waits "
                 "for another "
                 "worker or a copy"
               : "the time from kernel to kernel inside a launch: they are too short to keep the GPU busy";
  std::string text = "what the GPU does, above all ";
  for (std::size_t i = 0; i < std::min<std::size_t>(3, summary.rows.size()); ++i)
    text += fmt::format("{}{} ({:.0f} %)", i == 0 ? "" : ", ", shortened(summary.rows[i].name),
                        100 * summary.rows[i].seconds / total(summary));
  return text;
}

std::string whatToTry(const TraceSummary& summary, double share, double around) {
  if (share >= kWorking)
    return summary.rows.empty() ? "nothing was seen" : "a faster " + shortened(summary.rows.front().name);
  if (around > summary.withinLaunches && 2 * around > summary.betweenLaunches)
    return "shorter ends of rounds: most of the time in which the GPU has nothing to do is around merges";
  return summary.betweenLaunches > summary.withinLaunches
             ? "enqueuing earlier: a longer prefetchBuffer, or fewer workers than cores"
             : "fewer kernels a step, each with more to do";
}

}  // namespace

TraceSummary summarise(std::vector<Activity> activities) {
  TraceSummary summary;
  if (activities.empty()) return summary;
  std::ranges::stable_sort(activities, {}, &Activity::begin);
  const Activity* last = &activities.front();  // the one that ends last so far
  std::uint64_t busy = last->end - last->begin, within = 0, between = 0;
  std::uint64_t before = 0, after = 0;
  const Activity* previous = nullptr;  // in order of their beginnings
  for (const auto& a : activities) {
    if (isMerge(a) && (!previous || !isMerge(*previous))) ++summary.merges;
    previous = &a;
    if (a.begin > last->end) {
      const std::uint64_t gap = a.begin - last->end;
      (a.launch == last->launch ? within : between) += gap;
      if (isMerge(a) && !isMerge(*last)) before += gap;
      if (isMerge(*last) && !isMerge(a)) after += gap;
    }
    if (a.end <= last->end) continue;
    busy += a.end - std::max(a.begin, last->end);
    last = &a;
  }
  summary.span = 1e-9 * static_cast<double>(last->end - activities.front().begin);
  summary.busy = 1e-9 * static_cast<double>(busy);
  summary.withinLaunches = 1e-9 * static_cast<double>(within);
  summary.betweenLaunches = 1e-9 * static_cast<double>(between);
  summary.beforeMerges = 1e-9 * static_cast<double>(before);
  summary.afterMerges = 1e-9 * static_cast<double>(after);
  summary.rows = rowsOf(activities);
  return summary;
}

std::string describe(const TraceSummary& summary, std::int64_t steps, double secondsAStep) {
  const auto aStep = [steps](double seconds) { return 1e6 * seconds / static_cast<double>(steps); };
  const double share = summary.busy / static_cast<double>(steps) / secondsAStep;
  std::string text = fmt::format(
      "A step takes {:.1f} us. In {:.1f} us of them the GPU is at work ({:.0f} %).\n"
      "While it was traced, a step took {:.1f} us, and the GPU had nothing to do for {:.1f} us between the "
      "kernels of\n"
      "a launch and {:.1f} us between launches.\n"
      "What bounds it: {}.\n",
      1e6 * secondsAStep, aStep(summary.busy), 100 * share, aStep(summary.span),
      aStep(summary.withinLaunches), aStep(summary.betweenLaunches), whatBounds(summary, share));
  const double around = summary.beforeMerges + summary.afterMerges;
  if (summary.merges > 0)
    text += fmt::format(
        "Around each of {} merges the GPU had nothing to do for {:.1f} us before it and {:.1f} us after it: "
        "{:.1f} us a step.\n",
        summary.merges, 1e6 * summary.beforeMerges / static_cast<double>(summary.merges),
        1e6 * summary.afterMerges / static_cast<double>(summary.merges), aStep(around));
  text += "try: " + whatToTry(summary, share, around) + "\n\n";
  text += fmt::format("{:>10} {:>9} {:>10} {:>7}  {}\n", "us a step", "a step", "us each", "share", "");
  for (std::size_t i = 0; i < std::min(kMostRows, summary.rows.size()); ++i) {
    const auto& row = summary.rows[i];
    text += fmt::format("{:>10.2f} {:>9.2f} {:>10.2f} {:>5.1f} %  {}\n", aStep(row.seconds),
                        static_cast<double>(row.count) / static_cast<double>(steps),
                        1e6 * row.seconds / static_cast<double>(row.count),
                        100 * row.seconds / total(summary), shortened(row.name));
  }
  return text;
}

}  // namespace muster::bench
