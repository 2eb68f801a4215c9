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
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  static constexpr std::array kAll{0.0,    -0.0,   0.25,  0.5,    0.99,         1.0,        1.5,
                                   2.0,    3.0,    -0.5,  -1.0,   1e-8,         1e-320,     -1e-320,
                                   1e19,   1e30,   1e38,  -1e38,  4294967296.0, 0x1p53,     0x1p60,
                                   0x1p62, 0x1p63, 1e308, -1e308, kInfinity,    -kInfinity, kNan};
  return kAll;
}

std::span<const boost::json::value> hostileValues() {
  namespace json = boost::json;
  static const auto all = [] {
    std::vector<json::value> values{nullptr, true, false, json::object{}, ~std::uint64_t{0}};
    for (const json::array& array :
         {json::array{}, json::array{-1}, json::array{0.5}, json::array{"a"}, json::array{1, 2},
          json::array(5, 1), json::array(6, 1), json::array(7, 1)})
      values.emplace_back(array);
    for (const auto number : hostileIntegers()) values.emplace_back(number);
    for (const auto number : hostileDoubles())
      if (std::isfinite(number)) values.emplace_back(number);
    for (const auto& text :
         split("|a|\xC3\xA9|\xE2\x82\xAC|\xF0\x9F\x98\x80|\x7F|\xC2\x85|a\nb|a.b|\x1B[2J|cuda:1|cuda:x|cpu|"
               "updater.x|counters.iteration|features|F32|F64|I64|U8",
               '|'))
      values.emplace_back(text);
    values.emplace_back(std::string(5000, 'n'));
    return values;
  }();
  return all;
}

const std::vector<std::string>& brokenJson() {
  static const auto all = [] {
    auto texts = split(
        "| |{|}|[]|{}|null|7|1e999|-1e999|1e-999|01|1.|\"a|\"\\x\"|\"\\ud800\"|\"\\ud83d\\ude00\"|\"\xFF\"|"
        "\"\xC3\"|\"\xE0\x80\x80\"|\"\xED\xA0\x80\"|\"\xF0\x9F\x98\"|\"\xF4\x90\x80\x80\"|\"\xC3\xA9\"|"
        "\"\x01\"|{\"a\":1,\"a\":2}|{\"a\":1,}|{\"a\" 1}|{\"a\":1}{}|{\n\"a\":\n?}|[1,]|[1 2]|tru|"
        "{\"a\":18446744073709551616}|{\"a\":123456789012345678901234567890.5e-10}|"
        "{\"\\u0000\\n\\t\\\"\\\\\":\"\\b\\f\\r\\/\\u00e9\\u20ac\"}",
        '|');
    for (const std::size_t depth : {31, 33, 1000}) {
      texts.push_back(std::string(depth, '['));
      texts.push_back(std::string(depth, '[') + std::string(depth, ']'));
    }
    return texts;
  }();
  return all;
}

const std::vector<std::string>& hostileOptions() {
  static const auto all = split(
      "0|-1|1|1.5|2147483648|9223372036854775807|9223372036854775808|nan|inf|-inf|1e999|1e-320||,|a,,b|true|"
      "no|help|--|-x|=|0x10| 7|7 |1,1|\xFF|cuda:99999999999|adam:|adam:nan|every=0|every=-1,every=2|rate=|"
      "momentum=1e400|10Gbit|1Gbit,-1us|65537|%prefix%|100%",
      '|');
  return all;
}

const std::vector<Bytes>& foreignFiles() {
  using namespace std::string_view_literals;
  static const auto all = [] {
    std::vector<Bytes> files;
    for (const auto beginning :
         {""sv, "a"sv, "PK\x03\x04"sv, "\x80\x02"sv, "\x89HDF\r\n\x1a\n"sv, "\x1f\x8b"sv, "\x08\x01\x12"sv,
          "\x08\x01\x13"sv, "{\"a\":1}"sv, "[1, 2]"sv, "a text of words"sv,
          "\x00\x01\x00\x00\x00\x00\x00\x00"sv, "\x02\x00\x00\x00\x00\x00\x00\x00{}"sv,
          "\x03\x00\x00\x00\x00\x00\x00\x00{}"sv, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF{}"sv,
          "\x05\x00\x00\x80\x00\x00\x00\x00{}"sv})
      for (const std::size_t more : {0, 16})
        files.push_back(bytesOf(std::string(beginning) + std::string(more, ' ')));
    return files;
  }();
  return all;
}

}  // namespace muster::fuzz
