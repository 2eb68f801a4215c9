#pragma once

#include <array>
#include <boost/json/object.hpp>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace muster::dl4j::detail {

/// What a file has and muster does not support, each with its place: one error lists all of it.
class Problems {
 public:
  void add(std::string_view place, std::string_view text);
  bool empty() const { return texts_.empty(); }
  /// One sentence; at most the first twenty.
  std::string text() const;

 private:
  std::vector<std::string> texts_;
};

/// The last part of a Java class name: "ConvolutionLayer".
std::string_view shortName(std::string_view className);

/// An object of a configuration, read with defaults. A value of the wrong kind becomes a problem, and the
/// default is returned. The object must outlive it.
class Options {
 public:
  Options(const boost::json::object& object, std::string place, Problems& problems)
      : object_(&object), place_(std::move(place)), problems_(&problems) {}

  /// Something that muster does not have.
  void refuse(std::string_view text) const { problems_->add(place_, text); }
  const std::string& place() const { return place_; }
  Problems& problems() const { return *problems_; }

  /// The short name of the object's class; empty if it has none.
  std::string type() const;
  /// The member of the first of these names that exists and is not null. Some were spelled otherwise before.
  const boost::json::value* find(std::initializer_list<std::string_view> names) const;
  double number(std::initializer_list<std::string_view> names, double preset) const;
  /// At least 0 and less than 2^31.
  std::int64_t count(std::initializer_list<std::string_view> names, std::int64_t preset) const;
  bool flag(std::string_view name, bool preset) const;
  std::string word(std::initializer_list<std::string_view> names, std::string_view preset = {}) const;
  /// Counts; as many as the file has, at most 16.
  std::vector<std::int64_t> counts(std::string_view name) const;
  /// Two counts; one is taken for both.
  std::array<std::int64_t, 2> pair(std::string_view name, std::int64_t preset) const;
  std::vector<std::string> words(std::string_view name) const;
  /// A member that is an object; its place is this one's, or `inside`.
  Options object(std::initializer_list<std::string_view> names, std::string_view inside = {}) const;
  const boost::json::object& json() const { return *object_; }

 private:
  const boost::json::object* object_;
  std::string place_;
  Problems* problems_;
};

}  // namespace muster::dl4j::detail
