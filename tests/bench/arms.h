#pragma once

#include <boost/json.hpp>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Measurements that are compared: each is a process of its own, which prints one line of JSON. They take
// turns, so that a machine that changes its pace changes it for all.

namespace muster::bench {

/// One of those compared.
struct Arm {
  std::string name, command;
  std::string baseline = {};                      // the arm it is compared with; empty: none
  std::vector<boost::json::object> results = {};  // [round]
  std::string failure = {};                       // why it has no more of them

  /// In increasing order; "samplesPerSecond", say.
  std::vector<double> sorted(const char* field) const;
  /// Nothing where no result has the field.
  std::optional<double> median(const char* field) const;
};

/// Measures `rounds` times each. One that fails, or that says {"skipped": "why"}, is not measured again.
/// @param measured  called after each measurement.
/// @param goOn  called after each round, says whether there shall be another.
void measureInTurns(
    std::vector<Arm>& arms, int rounds, const std::function<void()>& measured = [] {},
    const std::function<bool()>& goOn = [] { return true; });

/// @throws std::runtime_error naming the first arm that failed, and how.
void requireAll(const std::vector<Arm>& arms);

/// The median of the ratios of samples a second taken round by round: a slow round is slow for both. Nothing
/// where they have no round in common.
std::optional<double> ratio(const Arm& arm, const Arm& baseline);

/// A field of one over a field of another, round by round, in increasing order.
std::vector<double> ratios(const Arm& arm, const char* field, const Arm& other, const char* otherField);

const Arm& find(const std::vector<Arm>& arms, std::string_view name);
bool has(const std::vector<Arm>& arms, std::string_view name);

/// All measurements. @param tables  [network] its arms
void writeJson(const std::map<std::string, std::vector<Arm>>& tables, const std::string& file);

}  // namespace muster::bench
