#include "tests/bench/arms.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>

#include "tests/bench/timing.h"

namespace muster::bench {

namespace json = boost::json;

namespace {

std::string ending(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was ended by signal {}", WTERMSIG(status));
  const int code = WEXITSTATUS(status);
  if (code == 124 || code == 137) return "did not end in time";
  if (code > 128) return fmt::format("crashed (signal {})", code - 128);
  return fmt::format("ended with status {}", code);
}

void measure(Arm& arm) {
  try {
    auto result = printedJson(arm.command);
    if (const auto* why = result.if_contains("skipped"))
      arm.failure = std::string(why->as_string());
    else
      arm.results.push_back(std::move(result));
  } catch (const std::exception& error) {
    arm.failure = error.what();
  }
}

std::string rateText(const json::object& result) {
  if (const auto* rate = result.if_contains("samplesPerSecond"))
    return fmt::format("{:>8.0f} samples/s", rate->to_number<double>());
  if (const auto* rate = result.if_contains("operationsPerSecond"))
    return fmt::format("{:>8.0f} GFLOP/s", 1e-9 * rate->to_number<double>());
  return json::serialize(result);
}

/// Empty without values.
std::optional<double> medianIfAny(const std::vector<double>& values) {
  return values.empty() ? std::nullopt : std::optional(medianOf(values));
}

}  // namespace

json::object printedJson(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot run " + command);
  std::string text;
  char part[4096];
  while (const std::size_t n = std::fread(part, 1, sizeof part, pipe)) text.append(part, n);
  if (const int status = pclose(pipe); status != 0) throw std::runtime_error(ending(status));
  return json::parse(text).as_object();
}

std::vector<double> Arm::sorted(const char* field) const {
  std::vector<double> values;
  for (const auto& result : results)
    if (const auto* value = result.if_contains(field)) values.push_back(value->to_number<double>());
  std::ranges::sort(values);
  return values;
}

std::optional<double> Arm::median(const char* field) const {
  return medianIfAny(sorted(field));
}

void measureInTurns(std::vector<Arm>& arms, int rounds, const std::function<void()>& measured,
                    const std::function<bool()>& goOn) {
  for (int round = 0; round < rounds; ++round) {
    for (auto& arm : arms) {
      if (!arm.failure.empty()) continue;
      measure(arm);
      fmt::print(stderr, "round {}/{}  {:<36} {}\n", round + 1, rounds, arm.name,
                 arm.failure.empty() ? rateText(arm.results.back()) : arm.failure);
      measured();
    }
    if (!goOn()) return;
  }
}

void requireAll(const std::vector<Arm>& arms) {
  for (const auto& arm : arms)
    if (!arm.failure.empty()) throw std::runtime_error(arm.name + ": " + arm.failure);
}

std::vector<double> ratios(const Arm& arm, const char* field, const Arm& other, const char* otherField) {
  std::vector<double> values;
  for (std::size_t i = 0; i < std::min(arm.results.size(), other.results.size()); ++i) {
    const auto* one = arm.results[i].if_contains(field);
    const auto* over = other.results[i].if_contains(otherField);
    if (one && over) values.push_back(one->to_number<double>() / over->to_number<double>());
  }
  std::ranges::sort(values);
  return values;
}

std::optional<double> ratio(const Arm& arm, const Arm& baseline) {
  return medianIfAny(ratios(arm, "samplesPerSecond", baseline, "samplesPerSecond"));
}

const Arm& find(const std::vector<Arm>& arms, std::string_view name) {
  return *std::ranges::find(arms, name, &Arm::name);
}

bool has(const std::vector<Arm>& arms, std::string_view name) {
  return std::ranges::find(arms, name, &Arm::name) != arms.end();
}

void writeJson(const std::map<std::string, std::vector<Arm>>& tables, const std::string& file) {
  json::object all;
  for (const auto& [network, arms] : tables) {
    json::object measurements;
    for (const auto& arm : arms) measurements[arm.name] = json::array(arm.results.begin(), arm.results.end());
    all[network] = std::move(measurements);
  }
  std::FILE* out = std::fopen(file.c_str(), "w");
  if (!out) throw std::runtime_error("cannot write " + file);
  fmt::print(out, "{}\n", json::serialize(all));
  std::fclose(out);
}

}  // namespace muster::bench
