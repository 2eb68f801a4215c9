"""./run test --plain and ./run test --sanitizers: the tests of what differs without the optional modules, and the part of
the tests under sanitizers that is quick enough to run daily."""
import sys

from project import RUN, Parser, check, fail

PLAIN = {"plain": """
    train_test train_errors_test train_resume_test interrupts_test files_test muster_test
    compare_test compare_arms_test read_results_test report_test run_session_test watch_resume_test watchers_test
    watching_changes_nothing_test file_faults_test"""}
SANITIZERS = {"tsan": """
    queue_test host_exchange_test device_exchange_test task_thread_test failure_test stop_test
    asynchronous_outer_test resume_test promises_test parallel_inference_test inference_worker_test call_queue_test
    first_failure_test watched_iterator_test""", "asan": """
    safetensors_test model_file_test checkpoint_files_test weights_test configuration_json_test json_fields_test
    input_file_test output_path_test atomic_file_test idx_test image_set_test image_folder_test file_bytes_test tar_test
    cifar10_test csv_test text_test published_test download_test file_fuzz_test"""}


def main():
    parser = Parser("test", __doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--plain", action="store_const", const=PLAIN, dest="chosen")
    which.add_argument("--sanitizers", action="store_const", const=SANITIZERS, dest="chosen")
    options, others = parser.parse_known_args()
    if others:
        fail(f"{'--plain' if options.chosen is PLAIN else '--sanitizers'} takes no other options")
    for preset, names in options.chosen.items():
        programs = names.split()
        check([RUN, "test", "--preset", preset, *(f"--target={program}" for program in programs), "--stop-on-failure",
               "--tests-regex", f"/({'|'.join(programs)}):"])


if __name__ == "__main__":
    sys.exit(main())
