#pragma once

#include "muster/core/io/json_fields.h"
#include "tests/support/standard.h"

namespace muster::test {

/// What visiting `value` as the field "it" writes to a file.
template <typename T>
std::string jsonOf(T value) {
  JsonWriter writer;
  value.field("it", writer);
  return writer.line();
}

/// A value read from what `jsonOf` writes.
/// @param before  fields that the text lacks keep its values.
template <typename T>
T fromJson(std::string_view text, T before = {}) {
  JsonReader reader(text);
  before.field("it", reader);
  reader.finish();
  return before;
}

}  // namespace muster::test
