/* token_command.h: `svmstream-http token`: makes a token, or revokes one. */
#ifndef HTTP_TOKEN_COMMAND_H
#define HTTP_TOKEN_COMMAND_H

/* Prints a new token on standard output and adds its line to the file, or prints the line on standard error;
 * with --revoke removes a line. Names of the command line are shown as they are: they come from its user.
 * argv[0] is "token". Returns the exit code: 0, 1 failed, 2 usage. */
int http_token_command_run(int argc, char *const *argv);

#endif
