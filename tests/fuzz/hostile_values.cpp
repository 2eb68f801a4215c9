#include "tests/fuzz/hostile_values.h"

namespace muster::fuzz {

std::span<const std::int64_t> hostileIntegers() {
  constexpr std::int64_t kOne = 1;
  using Limits = std::numeric_limits<std::int64_t>;
  static constexpr std::array kAll{
      Limits::min(),    -(kOne << 31),    -kOne,      kOne - 1,          kOne,         kOne * 2,
      kOne * 3,         kOne * 4,         kOne * 5,   kOne * 6,          kOne * 7,     kOne * 8,
      kOne * 16,        kOne * 17,        kOne * 33,  kOne << 8,         kOne << 15,   kOne << 16,
      (kOne << 31) - 1, kOne << 31,       kOne << 32, kOne << 40,        kOne << 53,   kOne << 56,
      kOne << 60,       (kOne << 60) - 1, kOne << 62, Limits::max() - 1, Limits::max()};
  return kAll;
}

std::span<const double> hostileDoubles() {
  using Limits = std::numeric_limits<double>;
  static constexpr std::array kAll{0.0,
                                   -0.0,
                                   0.25,
                                   0.5,
                                   0.99,
                                   1.0,
                                   1.5,
                                   2.0,
                                   3.0,
                                   -0.5,
                                   -1.0,
                                   1e-8,
                                   1e-320,
                                   -1e-320,
                                   1e19,
                                   1e30,
                                   1e38,
                                   -1e38,
                                   4294967296.0,
                                   0x1p53,
                                   0x1p60,
                                   0x1p62,
                                   0x1p63,
                                   1e308,
                                   -1e308,
                                   Limits::infinity(),
                                   -Limits::infinity(),
                                   Limits::quiet_NaN()};
  return kAll;
}

std::span<const boost::json::value> hostileValues() {
  namespace json = boost::json;
  static const auto all = [] {
    std::vector<json::value> values{nullptr,
                                    true,
                                    false,
                                    json::array{},
                                    json::object{},
                                    json::array{-1},
                                    json::array{0.5},
                                    json::array{"a"},
                                    json::array{1, 2},
                                    json::array(5, 1),
                                    json::array(6, 1),
                                    json::array(7, 1),
                                    ~std::uint64_t{0}};
    for (const auto number : hostileIntegers()) values.emplace_back(number);
    for (const auto number : hostileDoubles())
      if (std::isfinite(number)) values.emplace_back(number);
    for (const auto* const text : {"", "a", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\x7F",
                                   "\xC2\x85", "a\nb", "a.b", "\x1B[2J", "cuda:1", "cuda:x", "cpu"})
      values.emplace_back(text);
    values.emplace_back(std::string(5000, 'n'));
    return values;
  }();
  return all;
}

}  // namespace muster::fuzz
