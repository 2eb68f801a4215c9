#include "muster/parallel/nodes/byte_hash.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

using namespace muster;

namespace {

std::uint64_t hashOf(std::string_view text) {
  ByteHash hash;
  hash.add(text);
  return hash.value();
}

}  // namespace

TEST_CASE("texts that differ in a byte, their order or their length have other hashes") {
  const std::string nine(9, '\0'), ten(10, '\0');
  const std::set<std::uint64_t> hashes{hashOf(""),   hashOf("a"), hashOf("ab"),       hashOf("ba"),
                                       hashOf(nine), hashOf(ten), hashOf("12345678"), hashOf("123456789")};
  CHECK(hashes.size() == 8);
  CHECK(hashOf("ab") == hashOf(std::string("ab")));
}

TEST_CASE("what is added in two parts differs from the whole: the lengths count") {
  ByteHash parts, swapped;
  for (const char* const text : {"a", "b"}) parts.add(std::string_view(text));
  for (const char* const text : {"b", "a"}) swapped.add(std::string_view(text));
  CHECK(parts.value() != hashOf("ab"));
  CHECK(parts.value() != swapped.value());
}

TEST_CASE("a tensor has the hash of its bytes") {
  const Tensor values = Tensor::zeros({3});
  const std::uint64_t zeros = hashOf(std::string(12, '\0'));
  ByteHash hash;
  hash.add(values);
  CHECK(hash.value() == zeros);
  values.data<float>()[2] = -0.0f;  // equal as a number, not in its bits
  ByteHash negative;
  negative.add(values);
  CHECK(negative.value() != zeros);
}
