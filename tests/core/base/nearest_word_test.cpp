#include "muster/core/base/nearest_word.h"

#include "tests/support/test.h"

namespace muster {
namespace {

const std::vector<std::string> kKnown{"rate", "momentum", "rats"};

TEST_CASE("the nearest word is the one with the fewest changes, of equal ones the first") {
  CHECK(nearestWord("rat", kKnown) == "rate");  // one letter, as of "rats"
  CHECK(nearestWord("momenta", kKnown) == "momentum");
  CHECK(nearestWord("cvs", std::vector<std::string>{"mnist", "csv"}) == "csv");  // two have changed places
  CHECK(nearestWord("ab", std::vector<std::string>{"cba", "ba"}) == "ba");
  CHECK(nearestWord("Y", std::vector<std::string>{"a", "b", "y"}) == "y");
  CHECK(nearestWord("PRICE", std::vector<std::string>{"Prices", "price", "PRIZE"}) == "price");
  CHECK(nearestWord("Ratf", std::vector<std::string>{"RATE", "rate"}) == "rate");  // four changes, and two
  CHECK(nearestWord("INC", std::vector<std::string>{"in", "income"}) == "income");
}

TEST_CASE("a word that begins with what is given is nearer than any other, the shortest one first") {
  const std::vector<std::string> monitors{"auc", "accuracyOfAll", "accuracy", "loss"};
  CHECK(nearestWord("acc", monitors) == "accuracy");
  CHECK(nearestWord("accuracyO", monitors) == "accuracyOfAll");
  CHECK(nearestWord("auc", monitors) == "auc");
  CHECK(nearestWord("ac", monitors) == "auc");  // two letters are few
  CHECK(nearestHint("mom", kKnown) == "; the nearest is momentum");
}

TEST_CASE("a word that is more than a third away from all others has no nearest one") {
  for (const auto* far : {"", "r", "zigzag", "learning", "momentous occasion"}) {
    CAPTURE(far);
    CHECK_FALSE(nearestWord(far, kKnown));
    CHECK(nearestHint(far, kKnown).empty());
  }
  CHECK_FALSE(nearestWord("q", std::vector<std::string>{"a"}));  // nothing is left of it
  CHECK_FALSE(nearestWord("lr", std::vector<std::string>{"data", "format", "network"}));
  CHECK_FALSE(nearestWord("rate", {}));
}

TEST_CASE("the end of a message has the nearest word, and all words if it says so") {
  CHECK(nearestHint("rat", kKnown) == "; the nearest is rate");
  CHECK(nearestOfHint("rat", kKnown) == "; the nearest is rate, of rate, momentum, rats");
  CHECK(nearestOfHint("zigzag", kKnown) == "; there are rate, momentum, rats");
  CHECK(nearestOfHint("rat", {}) == "; there are none");
  CHECK(nearestInListHint("sdg", "adam, sgd") == "; the nearest is sgd");
  CHECK(nearestInListHint("newton", "adam, sgd").empty());
}

}  // namespace
}  // namespace muster
