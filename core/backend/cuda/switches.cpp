#include "muster/core/backend/cuda/switches.h"

#include <fmt/ranges.h>

#include <array>
#include <cstdlib>
#include <utility>

#include "muster/core/base/detail/log_scope.h"
#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/base/mutex.h"

namespace muster::cuda {
namespace {

constexpr std::array<std::pair<Conv2dChoice, std::string_view>, 6> kChoices{{
    {Conv2dChoice::Auto, "auto"},
    {Conv2dChoice::RowMajor, "row-major"},
    {Conv2dChoice::ChannelsLast, "channels-last"},
    {Conv2dChoice::PaddedChannels, "padded"},
    {Conv2dChoice::Direct, "direct"},
    {Conv2dChoice::ImplicitGemm, "implicit-gemm"},
}};

[[noreturn]] void refuse(std::string_view name, std::string_view wants, std::string_view got) {
  throw InvalidArgument(fmt::format("{}: expected {}, got {}", name, wants, got));
}

bool readFlag(const char* name, std::string_view value) {
  if (value == "0" || value == "1") return value == "1";
  refuse(name, "0 or 1", value);
}

MathMode readMathMode(const char* name, std::string_view value) {
  for (const auto& [mode, word] : EnumNames<MathMode>::kNames)
    if (word == value) return mode;
  refuse(name, "fp32, tf32 or bf16", value);
}

/// @param one  for example "conv1=padded".
Conv2dChoice readChoice(const char* name, std::string_view one) {
  const auto equals = one.find('=');
  if (equals != 0 && equals != std::string_view::npos)
    for (const auto& [choice, word] : kChoices)
      if (word == one.substr(equals + 1)) return choice;
  refuse(name, "layer=choice, with choices auto, row-major, channels-last, padded, direct and implicit-gemm",
         one);
}

}  // namespace

Conv2dChoice Switches::choiceFor(std::string_view layer) const {
  for (const std::string_view name : {layer, std::string_view("all")})
    if (const auto found = conv2d.find(name); found != conv2d.end()) return found->second;
  return Conv2dChoice::Auto;
}

Switches readSwitches(const std::function<const char*(const char* name)>& value) {
  Switches switches;
  const auto read = [&](const char* name, auto take) {
    const char* const text = value(name);
    if (!text || !*text) return;
    take(name, std::string_view(text));
    logWarning("{}={} is set", name, text);
  };
  read("MUSTER_CUDA_SIDE_STREAM", [&](auto name, auto text) { switches.sideStream = readFlag(name, text); });
  read("MUSTER_CUDA_GRAPHS", [&](auto name, auto text) { switches.graphs = readFlag(name, text); });
  read("MUSTER_CUDA_MATH", [&](auto name, auto text) { switches.mathMode = readMathMode(name, text); });
  read("MUSTER_CUDA_CONV2D", [&](auto name, std::string_view text) {
    while (!text.empty()) {
      const std::string_view one = text.substr(0, text.find(','));
      text.remove_prefix(std::min(text.size(), one.size() + 1));
      const Conv2dChoice choice = readChoice(name, one);
      switches.conv2d[std::string(one.substr(0, one.find('=')))] = choice;
    }
  });
  return switches;
}

const Switches& switches() {
  static const Switches read = readSwitches([](const char* name) { return std::getenv(name); });
  return read;
}

std::string unknownLayers(const Switches& switches, const std::set<std::string, std::less<>>& planned) {
  std::string unknown;
  for (const auto& [layer, choice] : switches.conv2d)
    if (layer != "all" && !planned.contains(layer)) unknown += (unknown.empty() ? "" : ", ") + layer;
  if (unknown.empty() || planned.empty()) return "";
  return fmt::format("MUSTER_CUDA_CONV2D: no convolution so far is that of a layer {}; there are {}", unknown,
                     fmt::join(planned, ", "));
}

namespace {
struct Planned {
  Mutex mutex;
  std::set<std::string, std::less<>> layers MUSTER_GUARDED_BY(mutex);
};
auto& planned = *new Planned;  // never destroyed, because contexts may be static
}  // namespace

void notePlanned(std::string_view layer) {
  if (layer.empty() || switches().conv2d.empty()) return;
  const Lock lock(planned.mutex);
  planned.layers.emplace(layer);
}

void warnOfUnknownLayers() noexcept {
  try {
    const Lock lock(planned.mutex);
    if (planned.layers.empty()) return;
    if (const auto text = unknownLayers(switches(), planned.layers); !text.empty())
      muster::detail::warnOnce(text);
  } catch (...) {  // only a warning is lost
  }
}

}  // namespace muster::cuda
