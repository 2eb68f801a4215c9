#include "muster/core/base/random.h"

#include <cmath>
#include <numbers>

namespace muster {
namespace {

constexpr std::uint64_t mix(std::uint64_t z) {  // splitmix64's finaliser: Steele et al. 2014
  z += 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

constexpr std::uint64_t hash(std::string_view name) {  // FNV-1a
  std::uint64_t h = 0xCBF29CE484222325ull;
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return h;
}

double unit(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (std::uint64_t{high} << 32) | low;
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, std::string_view name, std::int64_t epoch)
    : epoch_(static_cast<std::uint64_t>(epoch)) {
  const std::uint64_t key = mix(mix(seed) ^ hash(name));
  key_ = {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
}

double RandomStream::uniform(std::uint64_t index) const {
  const auto w = words(index);
  return unit(w[0], w[1]);
}

double RandomStream::normal(std::uint64_t index) const {
  const auto w = words(index);
  const double u = 1.0 - unit(w[0], w[1]);  // in (0, 1]: the logarithm is finite
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * unit(w[2], w[3]));
}

std::uint64_t RandomStream::below(std::uint64_t index, std::uint64_t bound) const {
  const auto w = words(index);
  const std::uint64_t bits = (std::uint64_t{w[0]} << 32) | w[1];
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(bits) * bound) >> 64);
}

}  // namespace muster
