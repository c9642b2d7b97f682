import { describeScreens } from './screen-checks.ts'

describeScreens('wide', 'second')
