// Names of actions, as the sources of the field write them.

import { describe, expect, it } from 'vitest';
import { operationReader } from '../../src/normalise/operations.ts';

const read = operationReader();

describe('operationReader', () => {
  it.each([
    ['policy.rule.update', 3, 3],
    ['CreateUser', 1, 1],
    ['api_key.created', 1, 1],
    ['ListRolePolicies', 2, 2],
    ['DELETE', 4, 4],
    ['Microsoft.OperationalInsights/workspaces/write', 3, 3],
    ['site.enabled', 3, 8],
    ['DisableRule', 3, 9],
    ['tunnel.suspended', 3, 12],
    ['device.enrolled', 1, 6],
    ['role.dropped', 4, 4],
    ['Removed member', 4, 4],
    ['team.joined', 99, 99],
    ['', 99, 99],
  ])('%s has activity %i in API Activity and %i in Entity Management', (name, api, entity) => {
    expect(read(name)).toMatchObject({ api, entity, login: 0 });
  });

  it.each([
    ['user.login', 1, 0],
    ['LOGIN', 1, 0],
    ['user_logged_in', 1, 0],
    ['Sign-in', 1, 0],
    ['login.failed', 1, 2],
    ['authentication.success', 1, 1],
    ['user.logout', 2, 0],
    ['SignOut', 2, 0],
  ])('%s is a login', (name, login, status) => {
    expect(read(name)).toMatchObject({ login, status });
  });

  it.each(['login_policy.update', 'UpdateAuthenticationSettings', 'blog.insight', 'catalogue'])(
    '%s is no login',
    (name) => {
      expect(read(name).login).toBe(0);
    },
  );

  it('returns the kind of object of an action', () => {
    expect([
      read('policy.update').object,
      read('CreateUser').object,
      read('update').object,
    ]).toEqual(['policy', 'user', '']);
  });

  it('reads names of any length', () => {
    expect(read('update '.repeat(300_000)).api).toBe(3);
  });
});
