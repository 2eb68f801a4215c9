#include "tests/bench/arms.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>

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

/// What a command prints, as JSON. @throws std::runtime_error if it fails.
json::object run(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot run " + command);
  std::string text;
  char part[4096];
  while (const std::size_t n = std::fread(part, 1, sizeof part, pipe)) text.append(part, n);
  if (const int status = pclose(pipe); status != 0) throw std::runtime_error(ending(status));
  return json::parse(text).as_object();
}

void measure(Arm& arm) {
  try {
    auto result = run(arm.command);
    if (const auto* why = result.if_contains("skipped"))
      arm.failure = std::string(why->as_string());
    else
      arm.results.push_back(std::move(result));
  } catch (const std::exception& error) {
    arm.failure = error.what();
  }
}

}  // namespace

std::vector<double> Arm::sorted(const char* field) const {
  std::vector<double> values;
  for (const auto& result : results)
    if (const auto* value = result.if_contains(field)) values.push_back(value->to_number<double>());
  std::ranges::sort(values);
  return values;
}

std::optional<double> Arm::median(const char* field) const {
  const auto values = sorted(field);
  if (values.empty()) return {};
  return values[values.size() / 2];
}

void measureInTurns(std::vector<Arm>& arms, int rounds, const std::function<void()>& measured,
                    const std::function<bool()>& goOn) {
  for (int round = 0; round < rounds; ++round) {
    for (auto& arm : arms) {
      if (!arm.failure.empty()) continue;
      measure(arm);
      fmt::print(stderr, "round {}/{}  {:<30} {}\n", round + 1, rounds, arm.name,
                 arm.failure.empty()
                     ? fmt::format("{:>8.0f} samples/s",
                                   arm.results.back().at("samplesPerSecond").to_number<double>())
                     : arm.failure);
      measured();
    }
    if (!goOn()) return;
  }
}

void requireAll(const std::vector<Arm>& arms) {
  for (const auto& arm : arms)
    if (!arm.failure.empty()) throw std::runtime_error(arm.name + ": " + arm.failure);
}

std::optional<double> ratio(const Arm& arm, const Arm& baseline) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(arm.results.size(), baseline.results.size()); ++i)
    ratios.push_back(arm.results[i].at("samplesPerSecond").to_number<double>() /
                     baseline.results[i].at("samplesPerSecond").to_number<double>());
  if (ratios.empty()) return {};
  std::ranges::sort(ratios);
  return ratios[ratios.size() / 2];
}

const Arm& find(const std::vector<Arm>& arms, std::string_view name) {
  return *std::ranges::find(arms, name, &Arm::name);
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
