#pragma once

#include <boost/json.hpp>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Compares measurements. Each is a separate process that prints one line of JSON. They take turns, so that
// changes of the machine's speed affect all.

namespace muster::bench {

/// One of the compared measurements.
struct Arm {
  std::string name, command;
  std::string baseline = {};                      // the arm it is compared with; empty: none
  std::vector<boost::json::object> results = {};  // [round]
  std::string failure = {};                       // why it stopped early

  /// Values of a field in increasing order, for example "samplesPerSecond".
  std::vector<double> sorted(const char* field) const;
  /// Empty if no result has the field.
  std::optional<double> median(const char* field) const;
};

/// Runs a command and parses its output as JSON. @throws std::runtime_error if it fails.
boost::json::object printedJson(const std::string& command);

/// Measures each arm `rounds` times. An arm that fails or prints {"skipped": "why"} is not measured again.
/// @param measured  called after each measurement.
/// @param goOn  called after each round; returns whether to start another one.
void measureInTurns(
    std::vector<Arm>& arms, int rounds, const std::function<void()>& measured = [] {},
    const std::function<bool()>& goOn = [] { return true; });

/// @throws std::runtime_error naming the first arm that failed, and how.
void requireAll(const std::vector<Arm>& arms);

/// The median over the rounds of the ratio of samples per second: a slow round is slow for both arms. Empty
/// if they have no common round.
std::optional<double> ratio(const Arm& arm, const Arm& baseline);

/// Ratios of two arms' fields by round, in increasing order.
std::vector<double> ratios(const Arm& arm, const char* field, const Arm& other, const char* otherField);

const Arm& find(const std::vector<Arm>& arms, std::string_view name);
bool has(const std::vector<Arm>& arms, std::string_view name);

/// All measurements. @param tables  [network] its arms
void writeJson(const std::map<std::string, std::vector<Arm>>& tables, const std::string& file);

}  // namespace muster::bench
