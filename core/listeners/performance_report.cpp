#include "muster/core/listeners/performance_report.h"

#include <fmt/format.h>

namespace muster {
namespace {

double perSecond(std::int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

WorkerTimes sumOf(const std::vector<WorkerTimes>& workers) {
  WorkerTimes sum;
  for (const auto& w : workers) {
    sum.batches += w.batches;
    sum.examples += w.examples;
    sum.computing += w.computing;
    sum.waitingForData += w.waitingForData;
    sum.waitingForWorkers += w.waitingForWorkers;
    sum.merging += w.merging;
  }
  return sum;
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

constexpr auto kRow = "{:<8} {:<8} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n";

std::string row(std::string_view name, std::string_view device, const WorkerTimes& w,
                double samplesPerSecond) {
  const auto shares = PerformanceReport::shares(w);
  return fmt::format(kRow, name, device, w.batches, w.examples, fmt::format("{:.0f}", samplesPerSecond),
                     percent(shares.computing), percent(shares.waitingForData),
                     percent(shares.waitingForWorkers), percent(shares.merging));
}

}  // namespace

std::int64_t PerformanceReport::batches() const {
  return sumOf(workers).batches;
}

std::int64_t PerformanceReport::examples() const {
  return sumOf(workers).examples;
}

double PerformanceReport::samplesPerSecond() const {
  return perSecond(examples() + elsewhere, seconds);
}

double PerformanceReport::samplesPerSecond(const WorkerTimes& worker) const {
  return perSecond(worker.examples, seconds);
}

PerformanceReport::Shares PerformanceReport::shares() const {
  return shares(sumOf(workers));
}

PerformanceReport::Shares PerformanceReport::shares(const WorkerTimes& w) {
  const auto whole = w.computing + w.waitingForData + w.waitingForWorkers + w.merging;
  if (whole.count() <= 0) return {};
  const auto share = [&](std::chrono::nanoseconds part) {
    return static_cast<double>(part.count()) / static_cast<double>(whole.count());
  };
  return {share(w.computing), share(w.waitingForData), share(w.waitingForWorkers), share(w.merging)};
}

std::string PerformanceReport::table() const {
  std::string text = fmt::format(kRow, "worker", "device", "batches", "examples", "samples/s", "computing",
                                 "data wait", "sync wait", "merging");
  for (const auto& w : workers)
    text += row(std::to_string(w.worker), w.device.toString(), w, samplesPerSecond(w));
  const auto here = sumOf(workers);
  if (elsewhere == 0) return text + row("all", "", here, samplesPerSecond());
  return text + row("here", "", here, samplesPerSecond(here)) +
         fmt::format("{:<27} {:>10} {:>10.0f}\n", "all", examples() + elsewhere, samplesPerSecond());
}

std::string PerformanceReport::speed() const {
  return fmt::format("{:.0f} samples/s{}", samplesPerSecond(), elsewhere > 0 ? " on all nodes" : "");
}

std::string PerformanceReport::line() const {
  if (batches() == 0) return speed();
  const Shares s = shares();
  return fmt::format("{};{} computing {}, waiting for data {}, synchronising {}, merging {}", speed(),
                     elsewhere > 0 ? " here" : "", percent(s.computing), percent(s.waitingForData),
                     percent(s.waitingForWorkers), percent(s.merging));
}

PerformanceReport performanceBetween(const std::vector<WorkerTimes>& before, std::vector<WorkerTimes> after,
                                     std::chrono::nanoseconds wall) {
  for (std::size_t i = 0; i < after.size() && i < before.size(); ++i) {
    after[i].batches -= before[i].batches;
    after[i].examples -= before[i].examples;
    after[i].computing -= before[i].computing;
    after[i].waitingForData -= before[i].waitingForData;
    after[i].waitingForWorkers -= before[i].waitingForWorkers;
    after[i].merging -= before[i].merging;
  }
  return {std::chrono::duration<double>(wall).count(), std::move(after)};
}

}  // namespace muster
