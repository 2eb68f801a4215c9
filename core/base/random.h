#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace muster {
/// The constants of Philox 4x32.
inline constexpr std::array<std::uint32_t, 2> kPhiloxFactors{0xD2511F53u, 0xCD9E8D57u};
inline constexpr std::array<std::uint32_t, 2> kPhiloxSteps{0x9E3779B9u, 0xBB67AE85u};  ///< of its keys

/// Philox4x32-10: four random words from a counter and a key, without state. Source: Salmon et al. 2011,
/// "Parallel random numbers: as easy as 1, 2, 3".
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                              std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{kPhiloxFactors[0]} * counter[0];
    const std::uint64_t b = std::uint64_t{kPhiloxFactors[1]} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += kPhiloxSteps[0];
    key[1] += kPhiloxSteps[1];
  }
  return counter;
}

/// A sequence of random numbers addressed by index: equal (seed, name, epoch, index) give the same number on
/// every machine, thread and device. A value; may be shared between threads.
///
/// The name says what the numbers are for ("dropout", "shuffle", "init conv1.weight"), so that uses of one
/// seed are independent.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::string_view name, std::int64_t epoch = 0);

  /// Four independent 32-bit words for `index`.
  std::array<std::uint32_t, 4> words(std::uint64_t index) const {
    return philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                   static_cast<std::uint32_t>(epoch_), static_cast<std::uint32_t>(epoch_ >> 32)},
                  key_);
  }
  /// Uniform in [0, 1), 53 bits.
  double uniform(std::uint64_t index) const;
  /// Standard normal, by Box and Muller.
  double normal(std::uint64_t index) const;
  /// Uniform in 0 .. bound-1; bound >= 1.
  std::uint64_t below(std::uint64_t index, std::uint64_t bound) const;

  /// The stream of the same seed and name in another epoch.
  RandomStream inEpoch(std::int64_t epoch) const {
    RandomStream other = *this;
    other.epoch_ = static_cast<std::uint64_t>(epoch);
    return other;
  }

  const std::array<std::uint32_t, 2>& key() const { return key_; }
  std::uint64_t epoch() const { return epoch_; }

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint64_t epoch_;
};

}  // namespace muster
