# orrery_python_test(<name> COMMAND <script> <argument...> [PROCESSORS <n>] [SECONDS <n>] [SHARED] [LONG [GATE <argument...>]] [WORKER]): a
# test of the whole program, by Debian's own Python, which has h5py. A script that skips all of its tests exits with 77.
# PROCESSORS is how many ranks run at a time most of the time. SECONDS is about how long it takes; the longest tests start first.
# SHARED says that some of its tests use the folder shared/ beside the repository and are skipped without it. If that
# folder is there, a second test <name>_alone runs those of its tests that use it as in a clone that stands alone.
# LONG says that all of it is too long for the gate. <name> is then only in the set `long`, and <name>_gate, in the set `gate`, takes fewer
# cases and leaves out tests that are marked as long (harness.long). GATE gives <name>_gate more arguments, or others in place of those
# after a word that both have.
# WORKER says that most of its runs take place in one process (case_worker.py), so that it is in the gate with sanitizers too.
set(ORRERY_SHARED ${PROJECT_SOURCE_DIR}/../shared CACHE PATH "real traces, which some tests use; they are skipped without")
find_program(ORRERY_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
if(NOT ORRERY_PYTHON)
  set(ORRERY_PYTHON ${Python3_EXECUTABLE})
endif()

# One test of orrery_python_test, in the set `gate` or `long`.
function(orrery_add_python_test name set)
  cmake_parse_arguments(ARG "ONLY_SHARED;FEWER" "PROCESSORS;SECONDS;SHARED" "COMMAND;LABELS" ${ARGN})
  add_test(NAME ${name} COMMAND ${ORRERY_PYTHON} ${ARG_COMMAND})
  set(environment
    ORRERY_BINARY=$<TARGET_FILE:orrery> ORRERY_SHARED=${ARG_SHARED} ORRERY_SCRATCH=${PROJECT_BINARY_DIR}/scratch
    ORRERY_SANITIZED=${ORRERY_SANITIZE} PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1)
  if(ARG_ONLY_SHARED)
    list(APPEND environment ORRERY_ONLY_SHARED=1)
  endif()
  if(ARG_FEWER)
    list(APPEND environment ORRERY_GATE=1)
  endif()
  if(TARGET case_runner)
    list(APPEND environment ORRERY_CASE_RUNNER=$<TARGET_FILE:case_runner>)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ORRERY_TEST_TIMEOUT} PROCESSORS ${ARG_PROCESSORS} COST ${ARG_SECONDS}
    SKIP_RETURN_CODE 77 LABELS "${set};${ARG_LABELS}" ENVIRONMENT "${environment}")
endfunction()

function(orrery_python_test name)
  cmake_parse_arguments(ARG "SHARED;LONG;WORKER" "PROCESSORS;SECONDS" "COMMAND;GATE" ${ARGN})
  if(NOT TARGET orrery)
    return()
  endif()
  if(NOT ARG_PROCESSORS)
    set(ARG_PROCESSORS 1)
  endif()
  if(NOT ARG_SECONDS)
    set(ARG_SECONDS 10)
  endif()
  set(gate gate)
  if(ORRERY_SANITIZE AND NOT ARG_WORKER)
    set(gate long)
  endif()
  set(more PROCESSORS ${ARG_PROCESSORS} SHARED ${ORRERY_SHARED} COMMAND ${ARG_COMMAND})
  if(ARG_LONG)
    orrery_add_python_test(${name} long SECONDS ${ARG_SECONDS} ${more})
    # It is a part of <name>, which is why scripts/test.sh --all leaves it out.
    orrery_add_python_test(${name}_gate ${gate} SECONDS 10 ${more} ${ARG_GATE} LABELS part FEWER)
  else()
    orrery_add_python_test(${name} ${gate} SECONDS ${ARG_SECONDS} ${more})
  endif()
  if(ARG_SHARED AND EXISTS ${ORRERY_SHARED} AND NOT ORRERY_SANITIZE)
    orrery_add_python_test(${name}_alone gate SECONDS 2 PROCESSORS ${ARG_PROCESSORS} SHARED ${PROJECT_BINARY_DIR}/no-shared-folder
      COMMAND ${ARG_COMMAND} ONLY_SHARED FEWER)
  endif()
endfunction()
