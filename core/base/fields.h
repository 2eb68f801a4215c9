#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/shape.h"

namespace muster {

/// Names of an enumeration's values, for files and tables: specialise `kNames` beside the enumeration.
template <typename E>
struct EnumNames;  // static constexpr std::array<std::pair<E, std::string_view>, n> kNames

/// Visits the options of a configuration; the same visit writes, reads and prints them.
///
/// An option struct lists its options in one member: `void fields(Fields& f) { f.field("stride", stride); }`.
/// A writer does not change the values; a reader replaces those that its source contains.
class Fields {
 public:
  virtual ~Fields() = default;

  virtual void field(std::string_view name, bool& value) = 0;
  virtual void field(std::string_view name, std::int64_t& value) = 0;
  virtual void field(std::string_view name, std::uint64_t& value) = 0;
  virtual void field(std::string_view name, double& value) = 0;
  virtual void field(std::string_view name, std::string& value) = 0;
  virtual void field(std::string_view name, Shape& value) = 0;
  /// One of `names`. A reader @throws InvalidArgument for any other word, naming those that exist.
  virtual void choice(std::string_view name, std::size_t& index, std::span<const std::string_view> names) = 0;
  /// A value whose type varies, as an updater or a schedule: written as an object whose "type" is `type`. A
  /// reader also takes the type alone, as "adam", and for a schedule a number, which stays the same. It
  /// sets `type` to the type it read, then calls `inside`, which creates that type and visits its
  /// fields.
  virtual void object(std::string_view name, std::string& type,
                      const std::function<void(Fields&)>& inside) = 0;
  /// Describes the next field, for schemas and tables. Readers and writers ignore it.
  /// @param description  a phrase without a full stop.
  /// @param range  of a number, or of each number of a list, as an interval: "[0, 1)", or "[1, )" without a
  ///        largest value. Readers ignore it; `validate()` is to check it.
  virtual void describe([[maybe_unused]] std::string_view description,
                        [[maybe_unused]] std::string_view range = {}) {}

  /// A field, its description and its range: `f.field("units", units, "number of outputs", "[1, )")`.
  template <typename T>
  void field(std::string_view name, T& value, std::string_view description, std::string_view range = {}) {
    describe(description, range);
    field(name, value);
  }

  template <std::size_t N>
  void field(std::string_view name, std::array<std::int64_t, N>& value) {
    Shape shape{std::span<const std::int64_t>(value)};
    field(name, shape);
    requireRank(name, shape, static_cast<int>(N));
    for (std::size_t i = 0; i < N; ++i) value[i] = shape[static_cast<int>(i)];
  }

  /// A value that visits itself as one field, such as a Schedule.
  template <typename T>
  requires requires(T& value, std::string_view name, Fields& fields) { value.field(name, fields); }
  void field(std::string_view name, T& value) { value.field(name, *this); }

  template <typename E>
  requires std::is_enum_v<E>
  void field(std::string_view name, E& value) {
    constexpr auto& pairs = EnumNames<E>::kNames;
    std::array<std::string_view, pairs.size()> words;
    std::size_t index = 0;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      words[i] = pairs[i].second;
      if (pairs[i].first == value) index = i;
    }
    choice(name, index, words);
    value = pairs[index].first;
  }

 private:
  static void requireRank(std::string_view name, const Shape& shape, int rank);
};

/// The name of an enumeration's value.
template <typename E>
std::string_view nameOf(E value) {
  for (const auto& [candidate, name] : EnumNames<E>::kNames)
    if (candidate == value) return name;
  return "?";
}

/// The value with a name. @param family  the kind of values, for error messages, as "initialiser".
/// @throws InvalidArgument for another word, naming those that exist.
template <typename E>
E valueNamed(std::string_view family, std::string_view word) {
  std::string known;
  for (const auto& [candidate, name] : EnumNames<E>::kNames) {
    if (name == word) return candidate;
    known.append(known.empty() ? "" : ", ").append(name);
  }
  throw InvalidArgument(fmt::format("{}: there is no type \"{}\"; there are {}", family, word, known));
}

}  // namespace muster
