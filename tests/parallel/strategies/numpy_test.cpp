// Every rule with a formula against an independent script: Note [Rules against NumPy].

#include "tests/parallel/strategies/reference.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("against NumPy: averaging, with each kind of period and each state of the updater") {
  checkAgainstNumpy("averaging", {{"averaging", "", "frequency=1"},
                                  {"averaging", "every=3,updaterState=keep", "frequency=3 state=keep"},
                                  {"averaging", "every=5,updaterState=reset", "frequency=5 state=reset"},
                                  {"averaging", "every=4,period.until=3", "frequency=4 post_local=3"},
                                  // At 0.25, 0.125, 0.0625: 2, 5 and 23 iterations.
                                  {"averaging", "every=2,period=qsr,period.alpha=0.3", "frequency=2 qsr=0.3"},
                                  {"averaging", "every=3,period=adacomm,period.interval=1,period.shrink=1",
                                   "frequency=3 adacomm=1 shrink=1"},
                                  {"averaging", "every=2,period=adacomm,period.interval=2,period.shrink=0.5",
                                   "frequency=2 adacomm=2 shrink=0.5"}});
}

TEST_CASE("against NumPy: running averages of the merged models") {
  checkAgainstNumpy("averaging", {{"averaging", "every=2", "frequency=2 ema=0.4"}}, {{.decay = 0.4}});
  checkAgainstNumpy("averaging", {{"averaging", "every=3", "frequency=3 swa=1"}}, {{.decay = {}}});
}

TEST_CASE("against NumPy: outer averaging, its presets and codecs") {
  const std::string here = "every=3,rate=0.7,momentum=0.9", there = "frequency=3 rate=0.7 momentum=0.9";
  checkAgainstNumpy("outer_averaging",
                    {{"outer", here, there},
                     {"outer", here + ",nesterov=true,updaterState=keep", there + " nesterov=1 state=keep"},
                     {"outer", here + ",nesterov=true,followLearningRate=true,updaterState=reset",
                      there + " nesterov=1 follow=1 state=reset"},
                     {"outer", "every=2,rate=0.7,momentum=0.5,nesterov=true,{codec}",
                      "frequency=2 rate=0.7 momentum=0.5 nesterov=1 {codec}"},
                     {"bmuf", "every=2", "frequency=2 momentum=bmuf state=reset"},
                     {"slowmo", "every=2", "frequency=2 momentum=0.5 follow=1 state=keep"},
                     {"diloco", "every=2", "frequency=2 rate=0.7 momentum=0.9 nesterov=1 state=keep"},
                     {"lookahead", "every=2", "frequency=2 rate=0.8 state=keep"}});
}

TEST_CASE("against NumPy: EASGD, EAMSGD (Nesterov momentum), SMA, and the order of updates") {
  checkAgainstNumpy(
      "elastic_averaging",
      {{"easgd", "every=3", "frequency=3"},
       {"easgd", "every=2,centreRate=0.5,elasticity=0.3,centreFirst=true,updaterState=average",
        "frequency=2 beta=0.5 alpha=0.3 order=centre state=average"},
       {"sma", "", "frequency=1 beta=1 alpha=0.1 order=centre"},
       {"easgd", "every=3,centreRate=0.6,updaterState=reset", "frequency=3 beta=0.6 state=reset"},
       {"easgd", "every=2,{codec}", "frequency=2 {codec}"}});
}

TEST_CASE("against NumPy: Adasum, with each state of the updater") {
  checkAgainstNumpy("adasum", {{"adasum", "every=3", "frequency=3"},
                               {"adasum", "every=1,updaterState=keep", "frequency=1 state=keep"},
                               {"adasum", "every=2,updaterState=reset", "frequency=2 state=reset"},
                               {"adasum", "every=2,{codec}", "frequency=2 {codec}"}});
}

TEST_CASE("against NumPy: gossip") {
  for (const std::string graph : {"exponential", "ring", "pairs", "complete"})
    for (const std::string every : {"1", "3"})
      checkAgainstNumpy("gossip", {{"gossip", "graph=" + graph + ",every=" + every,
                                    "graph=" + graph + " frequency=" + every}});
  checkAgainstNumpy(
      "gossip", {{"gossip", "graph=ring,every=2,updaterState=keep", "graph=ring frequency=2 state=keep"},
                 {"gossip", "graph=pairs,every=2,updaterState=reset", "graph=pairs frequency=2 state=reset"},
                 {"gossip", "graph=ring,every=2,{codec}", "graph=ring frequency=2 {codec}"},
                 {"gossip", "graph=complete,every=2,{codec}", "graph=complete frequency=2 {codec}"}});
}

TEST_CASE("against NumPy: hierarchical averaging, in groups of half of the workers if they are even") {
  checkAgainstNumpy(
      "hierarchical_averaging",
      {{"hierarchical", "levels=1:{half},3:all", "first=1 second=3 state=average"},
       {"hierarchical", "levels=2:{half},3:all,updaterState=keep", "first=2 second=3 state=keep"},
       {"hierarchical", "levels=2:{half},4:all,updaterState=reset", "first=2 second=4 state=reset"},
       {"hierarchical", "levels=3:{half},3:all", "first=3 second=3 state=average"},
       {"hierarchical", "levels=1:{half},100:all", "first=1 second=100 state=average"},
       {"hierarchical", "levels=1:{half},3:all,{codec}", "first=1 second=3 {codec}"}});
}

TEST_CASE("against NumPy: overlapped averaging: the delta form, the pull with momentum, and eager updates") {
  checkAgainstNumpy(
      "overlapped_averaging",
      {{"overlapped", "every=3,delay=2", "frequency=3 delay=2"},
       {"overlap-local-sgd", "", "frequency=2 delay=1 landing=pull strength=0.6 momentum=0.7"},
       {"overlapped", "every=3,delay=1,landing=eager,rate=0.7,momentum=0.5,nesterov=true,updaterState=keep",
        "frequency=3 delay=1 landing=eager rate=0.7 momentum=0.5 nesterov=1 state=keep"},
       {"overlapped", "every=4,delay=1,rate=0.8,momentum=0.5,updaterState=reset",
        "frequency=4 delay=1 rate=0.8 momentum=0.5 state=reset"}});
}

TEST_CASE("against NumPy: streaming: fragments, delay and mixing") {
  checkAgainstNumpy(
      "streaming_outer",
      {{"streaming", "every=4,fragments=2", "frequency=4 fragments=2"},
       {"streaming", "every=4,fragments=2,delay=0,mixing=0,rate=0.7,momentum=0.5",
        "frequency=4 fragments=2 delay=0 mixing=0 rate=0.7 momentum=0.5"},
       {"streaming",
        "every=6,fragments=2,delay=2,mixing=0.25,rate=0.7,momentum=0.5,nesterov=true,updaterState=keep",
        "frequency=6 fragments=2 delay=2 mixing=0.25 rate=0.7 momentum=0.5 nesterov=1 state=keep"}});
}

TEST_CASE("against NumPy: asynchronous outer steps of workers of different speeds") {
  const auto check = [](const std::string& here, const std::string& there) {
    checkAgainstNumpy("asynchronous_outer",
                      {{"asynchronous", "speeds={speeds}," + here, "speeds=1,0.5,2,0.75 " + there}});
  };
  check("every=2,rate=0.9", "frequency=2 rate=0.9");
  check("every=4,rate=0.7,fewerIterationsIfSlow=true,staleness=1",
        "frequency=4 rate=0.7 fewer=1 staleness=1");
  check("every=2,rate=0.5,momentum=0.5", "frequency=2 rate=0.5 momentum=0.5");
  check("every=1,rate=0.7,momentum=0.5,nesterov=true,grace=0.75",
        "frequency=1 rate=0.7 momentum=0.5 nesterov=1 grace=0.75");
  check("every=2,rate=0.25,momentum=0.5,nesterov=true,arrivalsPerStep=2,staleness=0",
        "frequency=2 rate=0.25 momentum=0.5 nesterov=1 arrivals=2 staleness=0");
  check("every=2,rate=0.25,momentum=0.5,nesterov=true,arrivalsPerStep=1",
        "frequency=2 rate=0.25 momentum=0.5 nesterov=1 arrivals=1");
  check("every=2,rate=0.5,momentum=0.5,{codec}", "frequency=2 rate=0.5 momentum=0.5 {codec}");
}
