#include "muster/core/comparison/network_link.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdlib>
#include <set>
#include <span>
#include <utility>

#include "muster/core/base/error.h"

namespace muster {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit kBandwidths[] = {{"bit", 1 / 8.},    {"kbit", 1e3 / 8}, {"Mbit", 1e6 / 8}, {"Gbit", 1e9 / 8},
                                {"Tbit", 1e12 / 8}, {"B", 1},          {"kB", 1e3},       {"MB", 1e6},
                                {"GB", 1e9},        {"TB", 1e12}};
constexpr Unit kLatencies[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};

constexpr std::int64_t kMostWorkers = 1024;

/// Reads a number with a unit; `whole` is the option's whole text, for messages.
double quantity(std::string_view text, std::span<const Unit> units, std::string_view what,
                std::string_view whole) {
  const std::string owned(text);
  char* end = nullptr;
  const double number = std::strtod(owned.c_str(), &end);
  require(end != owned.c_str() && std::isfinite(number), "link {}: the {} \"{}\" is not a number with a unit",
          whole, what, text);
  std::string_view unit = end;
  if (unit == "\u00b5s" || unit == "\u03bcs") unit = "us";  // the micro sign, and the Greek letter
  std::vector<std::string_view> names;
  for (const auto& known : units) {
    if (known.name == unit) return number * known.factor;
    names.push_back(known.name);
  }
  throw InvalidArgument(
      fmt::format("link {}: the {} \"{}\" {}: {}", whole, what, text,
                  unit.empty() ? "needs a unit" : fmt::format("has an unknown unit \"{}\"; there are", unit),
                  fmt::join(names, ", ")));
}

/// In the largest unit that leaves a number of at least 1.
std::string withUnit(double value, std::span<const Unit> units, std::string_view suffix) {
  const Unit* best = &units.front();
  for (const auto& unit : units)
    if (value >= unit.factor * (1 - 1e-12)) best = &unit;
  return fmt::format("{:.4g} {}{}", value / best->factor, best->name, suffix);
}

}  // namespace

NetworkLink parseNetworkLink(std::string_view text) {
  const auto comma = text.find(',');
  require(comma != std::string_view::npos && text.find(',', comma + 1) == std::string_view::npos,
          "link {}: expected a bandwidth and a latency, as in 10Gbit,50us", text);
  auto bandwidth = text.substr(0, comma);
  if (bandwidth.ends_with("/s")) bandwidth.remove_suffix(2);
  const NetworkLink link{quantity(bandwidth, kBandwidths, "bandwidth", text),
                         quantity(text.substr(comma + 1), kLatencies, "latency", text)};
  require(link.bytesPerSecond > 0, "link {}: the bandwidth must be more than 0", text);
  require(link.latencySeconds >= 0, "link {}: the latency cannot be negative", text);
  return link;
}

double mergeSeconds(const NetworkLink& link, bool summed, std::int64_t workers, double bytes) {
  if (workers < 2) return 0;
  const auto others = static_cast<double>(workers - 1);
  if (!summed) return others * (link.latencySeconds + bytes / link.bytesPerSecond);
  return 2 * others * (link.latencySeconds + bytes / static_cast<double>(workers) / link.bytesPerSecond);
}

LinkProjection projectOnLink(const NetworkLink& link, bool summed, const WorkerCost& cost,
                             std::int64_t workers) {
  LinkProjection projection{.workers = workers, .seconds = cost.computeSeconds, .computingShare = 1};
  const auto add = [&](bool priced, double rounds, double bytes) {
    if (rounds > 0) projection.seconds += rounds * mergeSeconds(link, priced, workers, bytes / rounds);
  };
  add(summed, cost.rounds - cost.resynchronisations, cost.bytes - cost.resynchronisationBytes);
  // Resynchronisations are sums, so the ring all-reduce applies to them, too.
  add(true, cost.resynchronisations, cost.resynchronisationBytes);
  if (projection.seconds > 0) projection.computingShare = cost.computeSeconds / projection.seconds;
  return projection;
}

std::vector<std::int64_t> projectedWorkers(std::span<const std::int64_t> own) {
  std::set<std::int64_t> all;
  for (std::int64_t workers = 2; workers <= kMostWorkers; workers *= 2) all.insert(workers);
  for (const auto workers : own)
    if (workers > 1) all.insert(workers);
  return {all.begin(), all.end()};
}

std::vector<std::string> linkAssumptions() {
  return {
      "Time = computing time of a worker + rounds x time of one merge. The rounds, the bytes of one merge "
      "and the computing time are those of the run, means over workers and seeds.",
      "A merge of parameters or gradients is a ring all-reduce: 2 (W - 1) latency + 2 (W - 1) / W bytes / "
      "bandwidth.",
      "Messages of shared gradients cannot be added up on their way, so every worker gets each of them "
      "around the ring: (W - 1) (latency + bytes / bandwidth). A round that resynchronises sends what can be "
      "added up: it is a ring all-reduce of all its bytes.",
      "Each of the W workers does what one worker of the arm did: as many batches of the same size, in as "
      "many rounds. So W workers train W times one worker's samples: seconds of arms whose own workers "
      "differ are not for the same work, samples per second can be compared. Nothing is said of the accuracy "
      "they would reach: that was measured with the arm's own workers only.",
      "\"Own, to\" the target: the arm with its own workers, up to the first test that had it; computing "
      "time in proportion to the samples.",
      "Computing and merging do not overlap, all workers are equally fast, every worker has a link of its "
      "own that sends and receives at once, nothing else uses it, and adding up the numbers takes no time.",
      "The computing time was measured on this machine, where the workers share memory and caches."};
}

std::string linkText(const NetworkLink& link) {
  return fmt::format("{}, {}", withUnit(link.bytesPerSecond, std::span(kBandwidths).first(5), "/s"),
                     link.latencySeconds > 0 ? withUnit(link.latencySeconds, kLatencies, "") : "no latency");
}

}  // namespace muster
