#include "muster/core/base/registry.h"

#include <sys/wait.h>
#include <unistd.h>

#include "muster/core/base/owner_process.h"
#include "tests/support/test.h"

using namespace muster;
using muster::test::thrown;

namespace {

struct Shape1 {
  virtual ~Shape1() = default;
};
struct Circle final : Shape1 {};
struct Square final : Shape1 {};

template <typename T>
std::unique_ptr<Shape1> make() {
  return std::make_unique<T>();
}

struct Threaded {
  OwnerProcess owner;
};

}  // namespace

TEST_CASE("a registry makes what was added by its name, and names what there is") {
  Registry<Shape1> shapes("shape");
  shapes.add("square", make<Square>);
  shapes.add("circle", make<Circle>);
  shapes.add("circle", make<Circle>);  // again: no effect
  CHECK(shapes.names() == "circle, square");
  CHECK(shapes.contains("circle"));
  CHECK(dynamic_cast<Square*>(shapes.make("square").get()) != nullptr);
  CHECK_REFUSED(shapes.make("line"), "shape: there is no type \"line\"; there are circle, square");
  CHECK_REFUSED(shapes.add("circle", make<Square>),
                "shape: there is a type \"circle\" already; yours needs another name");
}

TEST_CASE("an object with threads is used in its own process, while it is there") {
  auto here = std::make_unique<Threaded>();
  CHECK(&usable(here, "fit") == here.get());
  std::unique_ptr<Threaded> moved;
  CHECK_REFUSED(usable(moved, "fit"), "fit: this object was moved from; use the one that it was moved to");
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = !thrown<InvalidArgument>([&] { usable(here, "fit"); }).empty();
    abandonInChild(here);
    _exit(refused && here == nullptr ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  abandonInChild(here);
  CHECK(here != nullptr);
}
