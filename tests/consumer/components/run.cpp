#include <muster/parallel/run/run_session.h>

// Trains a run file in a folder that it may write to.
int main() {
  muster::RunSession session(muster::RunFile::parse(R"({"format": "muster-run/1", "network": "mlp",
      "data": {"type": "generated", "trainExamples": 100, "testExamples": 20}, "listeners": {"progress": false}})"));
  session.train();
  return session.saved() && session.evaluate().judged().examples() == 20 ? 0 : 1;
}
