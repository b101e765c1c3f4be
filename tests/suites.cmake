# Writes the file SUITES, with one entry of ctest for each suite of the test PROGRAM, and for each parameter of a suite
# that has parameters. The name of an entry says how to run it: the program and the filter. The entry writes how each
# TEST ended to the folder RESULTS, in a file of the entry's name; check.sh counts these.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests --gtest_filter=-${EXCLUDE}
                OUTPUT_VARIABLE list RESULT_VARIABLE status TIMEOUT 60)
if(NOT status EQUAL 0)
    message(FATAL_ERROR "${PROGRAM} does not list its tests: ${status}")
endif()

# The list has lines "Suite." and then "  a_test", or "  a_test/parameter  # GetParam() = ...". What follows "#" is cut
# off: its characters would break the list.
string(REGEX REPLACE " +#[^\n]*" "" list "${list}")
string(REPLACE "\n" ";" list "${list}")
set(filters)
foreach(line IN LISTS list)
    if(line MATCHES "^([^ ]+)\\.$")
        set(suite ${CMAKE_MATCH_1})
    elseif(line MATCHES "^  [^/]+/(.+)")
        list(APPEND filters "${suite}.*/${CMAKE_MATCH_1}")
    elseif(line MATCHES "^  ")
        list(APPEND filters "${suite}.*")
    endif()
endforeach()
list(REMOVE_DUPLICATES filters)

get_filename_component(program ${PROGRAM} NAME)
set(script)
foreach(filter IN LISTS filters)
    set(name "${program} ${filter}")
    string(REGEX REPLACE "[^A-Za-z0-9_]" "_" file ${name})
    string(APPEND script "add_test(\"${name}\" \"${PROGRAM}\" \"--gtest_filter=${filter}-${EXCLUDE}\" "
                         "\"--gtest_output=xml:${RESULTS}/${file}.xml\")\n"
                         "set_tests_properties(\"${name}\" PROPERTIES TIMEOUT ${TIMEOUT} LABELS ${program})\n")
endforeach()
file(WRITE ${SUITES} "${script}")
