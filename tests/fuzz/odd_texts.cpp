#include "tests/fuzz/odd_texts.h"

namespace muster::fuzz {

const std::vector<std::string>& brokenJson() {
  static const auto all = [] {
    std::vector<std::string> texts{"",
                                   " ",
                                   "{",
                                   "}",
                                   "[]",
                                   "{}",
                                   "null",
                                   "7",
                                   "1e999",
                                   "-1e999",
                                   "1e-999",
                                   "01",
                                   "1.",
                                   "\"a",
                                   "\"\\x\"",
                                   "\"\\ud800\"",
                                   "\"\\ud83d\\ude00\"",
                                   "\"\xFF\"",
                                   "\"\xC3\"",
                                   "\"\xE0\x80\x80\"",
                                   "\"\xED\xA0\x80\"",
                                   "\"\xF0\x9F\x98\"",
                                   "\"\xF4\x90\x80\x80\"",
                                   "\"\xC3\xA9\"",
                                   "\"\x01\"",
                                   "{\"a\":1,\"a\":2}",
                                   "{\"a\":1,}",
                                   "{\"a\" 1}",
                                   "{\"a\":1}{}",
                                   "{\n\"a\":\n?}",
                                   "[1,]",
                                   "[1 2]",
                                   "tru",
                                   "{\"a\":18446744073709551616}",
                                   "{\"a\":123456789012345678901234567890.5e-10}",
                                   "{\"\\u0000\\n\\t\\\"\\\\\":\"\\b\\f\\r\\/\\u00e9\\u20ac\"}"};
    for (const std::size_t depth : {31, 33, 1000}) {
      texts.push_back(std::string(depth, '['));
      texts.push_back(std::string(depth, '[') + std::string(depth, ']'));
    }
    return texts;
  }();
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
