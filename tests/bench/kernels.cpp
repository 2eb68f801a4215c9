#include "tests/bench/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <string_view>

namespace muster::bench {

namespace json = boost::json;

namespace {

Arm& armOf(std::vector<Arm>& arms, const std::string& name) {
  if (!has(arms, name)) arms.push_back({name, ""});
  return *std::ranges::find(arms, name, &Arm::name);
}

/// The first counter that the kernel has, or null.
const json::value* counter(const json::object& kernel, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto* value = kernel.if_contains(name)) return value;
  return nullptr;
}

double nanosecondsOf(std::string_view unit) {
  if (unit == "us") return 1e3;
  if (unit == "ms") return 1e6;
  return unit == "s" ? 1e9 : 1;
}

json::object resultOf(const json::object& kernel, const json::object& machine) {
  const std::string name(kernel.at("name").as_string());
  const bool wall = name.ends_with("/real_time") || name.ends_with("/manual_time");
  const double time = kernel.at(wall ? "real_time" : "cpu_time").to_number<double>();
  const double calls = 1e9 / (time * nanosecondsOf(kernel.at("time_unit").as_string()));
  const auto rate = [&](const char* ofWall, const char* ofProcessor) {
    return machine.at(wall ? ofWall : ofProcessor).to_number<double>();
  };
  const double peak = rate("operationsPerSecond", "operationsPerProcessorSecond");
  json::object result{{"callsPerSecond", calls}};
  if (const auto* operations = counter(kernel, {"FLOP/s"})) {
    result["limit"] = "peak";
    result["ofMachine"] = operations->to_number<double>() / peak;
  } else if (const auto* bytes = counter(kernel, {"bytes/s", "bytes_per_second"})) {
    result["limit"] = "copy";
    result["ofMachine"] =
        bytes->to_number<double>() / rate("copyBytesPerSecond", "copyBytesPerProcessorSecond");
  } else {
    result["ofMachine"] = calls / peak;
  }
  return result;
}

}  // namespace

void addKernels(std::vector<Arm>& kernels, const json::object& output, const json::object& machine) {
  for (const auto& value : output.at("benchmarks").as_array()) {
    const auto& kernel = value.as_object();
    if (kernel.at("run_type") != "iteration") continue;
    auto& arm = armOf(kernels, std::string(kernel.at("name").as_string()));
    if (const auto* why = kernel.if_contains("error_message"))
      arm.failure = std::string(why->as_string());
    else
      arm.results.push_back(resultOf(kernel, machine));
  }
}

void printKernels(const std::vector<Arm>& kernels) {
  std::size_t width = 0;
  for (const auto& kernel : kernels) width = std::max(width, kernel.name.size());
  fmt::print("\n{:<{}} {:>11} {:>9} {:>9}\n", "", width, "us", "of peak", "of copy");
  for (const auto& kernel : kernels) {
    if (!kernel.failure.empty() || kernel.results.empty()) {
      fmt::print("{:<{}} {}\n", kernel.name, width, kernel.failure);
      continue;
    }
    const auto share = [&](const char* limit) {
      const auto* own = kernel.results.front().if_contains("limit");
      return own && *own == limit ? fmt::format("{:.0f} %", 100 * *kernel.median("ofMachine")) : "-";
    };
    fmt::print("{:<{}} {:>11.2f} {:>9} {:>9}\n", kernel.name, width, 1e6 / *kernel.median("callsPerSecond"),
               share("peak"), share("copy"));
  }
  std::fflush(stdout);
}

}  // namespace muster::bench
