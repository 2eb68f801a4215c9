#include "tests/fuzz/json_changes.h"

#include <boost/json/serialize.hpp>

#include "tests/fuzz/hostile_values.h"

namespace muster::fuzz {
namespace {

namespace json = boost::json;
using Values = std::vector<json::value>;

/// A misspelt word.
std::string_view withoutFirst(std::string_view word) {
  return word.substr(std::min<std::size_t>(1, word.size()));
}

/// Each element left out, repeated, and exchanged with the one before.
void addArrays(const json::array& array, Values& values) {
  for (std::size_t i = 0; i < array.size(); ++i) {
    json::array without = array, twice = array;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    values.emplace_back(std::move(without));
    twice.push_back(array[i]);
    values.emplace_back(std::move(twice));
    if (i == 0) continue;
    json::array exchanged = array;
    std::swap(exchanged[i - 1], exchanged[i]);
    values.emplace_back(std::move(exchanged));
  }
}

/// Each field left out and misspelt, and one more.
void addObjects(const json::object& object, Values& values) {
  for (const auto& [key, value] : object) {
    json::object without = object;
    without.erase(key);
    json::object misspelt = without;
    misspelt[withoutFirst(key)] = value;
    values.emplace_back(std::move(misspelt));
    values.emplace_back(std::move(without));
  }
  json::object more = object;
  more["unknown"] = 1;
  values.emplace_back(std::move(more));
}

/// What may replace a place of a document, by what the place and the document are.
Values variants(const Place& place, json::value& document, const Vocabulary& vocabulary) {
  const auto known = vocabulary.of(place.field);
  Values values(known.begin(), known.end());
  if (const auto* const text = place.value->if_string()) {
    for (const auto& other : placesIn(document))
      if (other.value->is_string() && other.value->get_string().size() < 64) values.push_back(*other.value);
    values.emplace_back(withoutFirst(*text));
  }
  if (const auto* const array = place.value->if_array()) addArrays(*array, values);
  if (const auto* const object = place.value->if_object()) addObjects(*object, values);
  return values;
}

void nest(json::value& value, Draw& draw) {
  static constexpr std::array<std::size_t, 5> kDepths{1, 2, 31, 33, 200};
  for (std::size_t depth = draw.of(kDepths); depth-- > 0;) {
    json::value inner = std::move(value);
    if (draw.oneIn(2))
      value = json::array{std::move(inner)};
    else
      value = json::object{{"type", std::move(inner)}};
  }
}

/// Replaces a number by one near it or by a hostile one.
void changeNumber(json::value& number, Draw& draw) {
  if (draw.oneIn(5) && number.is_int64())
    number = static_cast<std::int64_t>(static_cast<std::uint64_t>(number.get_int64()) + draw.below(3) - 1);
  else if (draw.oneIn(4))
    number = draw.of(hostileDoubles());
  else
    number = draw.hostile();
}

}  // namespace

void mutateJson(json::value& root, Draw& draw, const Vocabulary& vocabulary) {
  const auto places = placesIn(root);
  const Place& place = draw.of(places);
  switch (draw.below(14)) {
    case 0:
      if (draw.oneIn(4)) nest(*place.value, draw);
      return;
    case 1: {
      json::value other = *draw.of(places).value;
      *place.value = std::move(other);
      return;
    }
    case 2:
    case 3:
      *place.value = draw.of(hostileValues());
      return;
    case 4:
    case 5:
    case 6:
    case 7:
    case 8:
      if (const auto all = variants(place, root, vocabulary); !all.empty()) *place.value = draw.of(all);
      return;
    default:  // numbers are what hostile files are about
      if (place.value->is_number()) return changeNumber(*place.value, draw);
      for (const auto& leaf : places)
        if (leaf.value->is_number() && draw.oneIn(3)) return changeNumber(*leaf.value, draw);
  }
}

std::string mutateJsonText(std::string_view text, Draw& draw, const Vocabulary& vocabulary) {
  auto value = jsonIn(text);
  if (!value || draw.oneIn(16)) {
    Bytes bytes = bytesOf(text);
    mutateBytes(bytes, draw);
    return std::string(textOf(bytes));
  }
  for (std::size_t times = 1 + draw.below(3); times-- > 0;) mutateJson(*value, draw, vocabulary);
  return json::serialize(*value);
}

std::string mutateJsonLines(std::string_view text, Draw& draw) {
  auto lines = split(text, '\n');
  if (lines.empty()) lines.emplace_back("{}");
  std::string& line = draw.of(lines);
  const auto at = lines.begin() + (&line - lines.data());
  switch (draw.below(8)) {
    case 0:
      lines.erase(at);
      break;
    case 1:
      lines.insert(at, line);
      break;
    case 2:
      std::swap(line, draw.of(lines));
      break;
    default:
      line = mutateJsonText(line, draw);
  }
  std::string joined;
  for (const auto& one : lines) joined.append(one).append(draw.oneIn(16) ? "" : "\n");
  if (joined.ends_with('\n') && !text.ends_with('\n') && !draw.oneIn(4)) joined.pop_back();
  return joined;
}

JsonSweep::JsonSweep(std::vector<json::value> documents, const Vocabulary& vocabulary)
    : documents_(std::move(documents)) {
  std::set<std::string> made;
  for (std::size_t d = 0; d < documents_.size(); ++d) {
    const auto places = placesIn(documents_[d]);
    for (std::size_t p = 0; p < places.size(); ++p) {
      Values values = variants(places[p], documents_[d], vocabulary);
      values.insert(values.end(), hostileValues().begin(), hostileValues().end());
      for (auto& value : values)
        if (made.insert(places[p].subject + "=" + json::serialize(value)).second)
          changes_.push_back({d, p, std::move(value)});
    }
  }
}

JsonSweep::Changed JsonSweep::at(std::size_t number) const {
  const Change& change = changes_.at(number);
  json::value document = documents_[change.document];
  *placesIn(document)[change.place].value = change.value;
  return {change.document, std::move(document)};
}

Sweep JsonSweep::texts() const {
  return {size(), [this](std::size_t number) { return bytesOf(json::serialize(at(number).value)); }};
}

Sweep sizeSweep(std::vector<json::value> documents) {
  static constexpr std::array<std::int64_t, 9> kSizes{1, 2, 3, 4, 7, 8, 16, 17, 33};
  constexpr std::size_t kOfPair = kSizes.size() * kSizes.size();
  std::vector<std::array<std::size_t, 3>> pairs;  // a document and two places
  for (std::size_t d = 0; d < documents.size(); ++d) {
    std::vector<std::size_t> numbers;
    const auto places = placesIn(documents[d]);
    for (std::size_t p = 0; p < places.size(); ++p)
      if (places[p].value->is_int64() && places[p].field != "version" && places[p].field != "seed")
        numbers.push_back(p);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) pairs.push_back({d, numbers[j], numbers[i]});
  }
  const auto size = pairs.size() * kOfPair;
  return {size, [all = std::move(documents), pairs = std::move(pairs)](std::size_t number) {
            const auto& [document, first, second] = pairs[number / kOfPair];
            json::value changed = all[document];
            const auto places = placesIn(changed);
            *places[first].value = kSizes[number % kOfPair / kSizes.size()];
            *places[second].value = kSizes[number % kSizes.size()];
            return bytesOf(json::serialize(changed));
          }};
}

}  // namespace muster::fuzz
