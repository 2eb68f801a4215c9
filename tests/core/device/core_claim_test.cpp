#include "muster/core/device/core_claim.h"

#include <unistd.h>

#include "muster/core/device/context.h"
#include "muster/core/device/device.h"
#include "tests/support/child_process.h"
#include "tests/support/skip.h"
#include "tests/support/test.h"

using namespace muster;
using namespace muster::test;

namespace {

using Cores = std::vector<int>;

/// Four core numbers that no real core and no concurrent test has.
Cores unrealCores() {
  const int first = 100'000 + 4 * static_cast<int>(::getpid());
  return {first, first + 1, first + 2, first + 3};
}

}  // namespace

TEST_CASE("claims share no core, and release their cores at the end") {
  const Cores all = unrealCores();
  std::optional<CoreClaim> first(std::in_place, all, 2);
  CHECK(first->cores() == Cores{all[0], all[1]});
  const CoreClaim second(all, 1);
  CHECK(second.cores() == Cores{all[2]});
  first.reset();
  CHECK(CoreClaim(all, 3).cores() == Cores{all[0], all[1], all[3]});
}

TEST_CASE("a claim that cannot have all its cores has none, and does not block others") {
  const Cores all = unrealCores();
  const CoreClaim first(all, 2);
  const CoreClaim tooMany(all, 3);
  CHECK(tooMany.cores().empty());
  CHECK(CoreClaim(all, 2).cores() == Cores{all[2], all[3]});
}

TEST_CASE("a claim that is moved stays valid") {
  const Cores all = unrealCores();
  CoreClaim first(all, 4), second;
  second = std::move(first);
  CHECK(CoreClaim(all, 1).cores().empty());
  second = CoreClaim();
  CHECK(CoreClaim(all, 4).cores() == all);
}

TEST_CASE("another process skips this one's claimed cores, and its own claims end with it") {
  const Cores all = unrealCores();
  std::optional<CoreClaim> held(std::in_place, Cores{all[1]}, 1);
  const auto freeElsewhere = [&] {
    return inChild([&] {
      std::string free;  // core 1 is in the child's copy of this process's list
      for (const int core : all)
        if (core != all[1] && !CoreClaim(Cores{core}, 1).cores().empty())
          free += std::to_string(core - all[0]);
      return free;
    });
  };
  CHECK(freeElsewhere() == "023");
  // The child claims a core; nothing was claimed before the fork.
  int ready[2], done[2];
  REQUIRE(::pipe(ready) == 0);
  REQUIRE(::pipe(done) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    const CoreClaim claim(Cores{all[3]}, 1);
    [[maybe_unused]] auto moved = ::write(ready[1], &byte, 1);
    moved = ::read(done[0], &byte, 1);
    ::_exit(0);
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  CHECK(CoreClaim(Cores{all[3]}, 1).cores().empty());
  REQUIRE(::write(done[1], &byte, 1) == 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(CoreClaim(Cores{all[3]}, 1).cores() == Cores{all[3]});
  for (const int end : {ready[0], ready[1], done[0], done[1]}) ::close(end);
}

TEST_CASE("a claim of what is free takes no core twice") {
  const Cores all = unrealCores();
  const CoreClaim first(Cores{all[1]}, 1);
  const CoreClaim second = CoreClaim::ofFree(all);
  CHECK(second.cores() == Cores{all[0], all[2], all[3]});
  CHECK(CoreClaim::ofFree(all).cores().empty());
}

TEST_CASE("a context that the program has pinned claims its cores") {
  const Cores core = {availableCores().front()};
  const auto isFree = [&] { return !CoreClaim(core, 1).cores().empty(); };
  // Workers of another process may be pinned to this core now and then.
  bool wasFree = false, claimed = false;
  for (int i = 0; i < 100 && !claimed; ++i) {
    if (!isFree()) continue;
    wasFree = true;
    const Context pinned(Device::cpu(), {.cores = core});
    claimed = !isFree();
  }
  if (!wasFree) return skip("another process has pinned its workers here");
  CHECK(claimed);
}
